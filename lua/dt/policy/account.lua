-- policy.account(costs): what drafts have gained so far, in target passes over the root alone. They may lose LOSS of
-- plain decoding's time over a text of SHORT tokens or more, all of it at the beginning; what good times gain, SAVED at
-- most, is there for bad ones. So by the costs no such text takes longer than 1 + LOSS times plain decoding.
--
--   a:rests()                an iteration begins: whether it must not draft. Then nothing else is called
-- Where an iteration's whole time is known, as to rate:
--   a:budget(plain, least) -> ms   what the iteration may lose, where a pass over the root takes `plain` ms: a part of
--                            what is left, `least` or more; nil: that is not left
--   a:spend(ms, plain, accepted)   it ends: its ms in all, and nodes that were accepted
-- Where drafts only are counted, as in cast:
--   a:affords(context[, sequences]), a:owes(), a:pass(rows), a:close(rows, accepted): policies/COSTS.md
local ceil, max, min, setmetatable = math.ceil, math.max, math.min, setmetatable

local LOSS, SHORT, SAVED = 0.01, 200, 16
local PART = 0.5 -- of what is left, for one iteration of rate
local STEP = 0.05 -- ms of a page for each draft pass and sequence
local Account = {}
Account.__index = Account

function Account:rests()
  self.rest, self.missed, self.tokens, self.took = self.rest - 1, self.missed + 1, self.tokens + 1, 0
  return self.rest >= 0
end

-- How many passes may be lost. The token that each iteration brings is among self.tokens already.
function Account:left() return self.balance + LOSS * max(self.tokens, SHORT) end

-- Whether so many passes may be lost; if not, it rests until they may.
function Account:covers(passes)
  local covers = passes <= self:left()
  if not covers then self.rest = ceil((passes - self.balance) / LOSS - self.tokens) - 1 end
  return covers
end

function Account:budget(plain, least)
  return self:covers(least / plain) and max(least, PART * self:left() * plain) or nil
end

-- In debt, after losses in two iterations, it rests in one: what is left lasts longer. A look that costs less than LOSS
-- is no loss.
function Account:spend(ms, plain, accepted)
  local lost = ms / plain - 1
  self:earn(accepted, lost)
  local lost_before = self.lost
  self.lost = self:owes() and accepted == 0 and lost > LOSS
  if self.lost and lost_before then self.rest = 1 end
end

function Account:earn(accepted, lost)
  self.tokens, self.balance = self.tokens + accepted, min(self.balance + accepted - lost, SAVED)
end

-- Whether there is enough for a first draft pass, in which the draft model sees what it missed; sequences: as of costs.
function Account:affords(context, sequences)
  local costs = self.costs
  self.context, self.sequences = context, sequences or costs:sequences()
  self.once = costs:target(1, context, self.sequences)
  self.first = costs:first(context, self.sequences) + costs:draft(self.missed, context, self.sequences)
    - costs:draft(1, context, self.sequences)
  return self:covers((self.first + STEP * self.sequences) / self.once)
end

-- Whether drafts have brought less so far than they cost.
function Account:owes() return self.balance < 0 end

-- A draft pass over so many rows.
function Account:pass(rows)
  local ms = self.took == 0 and self.first or self.costs:draft(rows, self.context, self.sequences)
  self.took, self.missed = self.took + (ms + STEP * self.sequences) / self.once, 0
end

-- An iteration ends in which so many rows were verified, and so many nodes accepted.
function Account:close(rows, accepted)
  if self.took == 0 then return end
  self:earn(accepted, self.took + self.costs:target(rows, self.context, self.sequences) / self.once - 1)
end

return function(costs)
  return setmetatable({ costs = costs, balance = 0, tokens = 0, rest = 0, missed = 0, took = 0 }, Account)
end
