-- policy.account(costs[, loan]): what trying has cost and brought, in target passes over the root alone. It gets FREE
-- at each iteration and may be overdrawn by the loan; what good times brought, up to SAVED, is there for bad ones. So
-- guesses that never come true cost FREE of plain decoding's time and the loan in all, by the costs.
--
-- Where an iteration's whole time is known, as to rate:
--   a:budget(plain) -> ms    an iteration begins: what may be lost in it, where a pass over the root takes `plain` ms
--   a:spend(ms, plain, accepted)   it ends: its ms in all, and nodes that were accepted
-- Where drafts only are counted, as in cast:
--   a:rests(), a:affords(context[, sequences]), a:owes(), a:pass(rows), a:close(rows, accepted): policies/COSTS.md
local ceil, min, setmetatable = math.ceil, math.min, setmetatable

local FREE, LOAN, SAVED = 0.004, 2, 16
local STEP = 0.05 -- ms of a page for each draft pass and sequence
local Account = {}
Account.__index = Account

function Account:budget(plain)
  self.balance = min(self.balance + FREE, SAVED)
  return (self.balance + self.loan) * plain
end

function Account:spend(ms, plain, accepted) self.balance = min(self.balance + accepted - ms / plain + 1, SAVED) end

-- An iteration begins: whether it is one to rest. Else affords must follow.
function Account:rests()
  self.balance = min(self.balance + FREE, SAVED)
  self.rest, self.missed, self.took = self.rest - 1, self.missed + 1, 0
  return self.rest >= 0
end

-- Whether there is enough for a first draft pass, in which the draft model sees what it missed; sequences: as of costs.
function Account:affords(context, sequences)
  local costs = self.costs
  self.context, self.sequences = context, sequences or costs:sequences()
  self.once = costs:target(1, context, self.sequences)
  self.first = costs:first(context, self.sequences) + costs:draft(self.missed, context, self.sequences)
    - costs:draft(1, context, self.sequences)
  local short = (self.first + STEP * self.sequences) / self.once - self.balance - self.loan
  if short > 0 then self.rest = ceil(short / FREE) - 1 end -- who wakes gets FREE, too
  return short <= 0
end

-- Whether drafts have brought less so far than they cost.
function Account:owes() return self.balance <= 0 end

-- A draft pass over so many rows.
function Account:pass(rows)
  local ms = self.took == 0 and self.first or self.costs:draft(rows, self.context, self.sequences)
  self.took, self.missed = self.took + (ms + STEP * self.sequences) / self.once, 0
end

-- An iteration ends in which so many rows were verified, and so many nodes accepted.
function Account:close(rows, accepted)
  if self.took == 0 then return end
  local took = self.took + self.costs:target(rows, self.context, self.sequences) / self.once - 1
  self.balance = min(self.balance + accepted - took, SAVED)
end

return function(costs, loan)
  return setmetatable({ costs = costs, loan = loan or LOAN, balance = 0, rest = 0, missed = 0, took = 0 }, Account)
end
