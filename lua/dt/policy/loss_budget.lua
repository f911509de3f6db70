-- policy.loss_budget(costs[, seq]): limits the time that drafts may lose if expectations are wrong. Its unit is one
-- target pass over the root alone; a token is worth one such pass. Two limits apply at the same time:
--
--   of the pair  begins with CREDIT passes. Each token adds LOSS, each accepted node adds 1, and the time of drafts is
--                subtracted; the balance never exceeds SAVED. It is carried over to later texts (costs:keep); with a
--                table of costs each text begins with CREDIT. Beyond the opening credit, drafts therefore cost at most
--                1 % of plain decoding's time over all texts.
--   of the text  a single text may lose TEXT of its tokens, or of SHORT tokens if it is shorter: at most 5 % of plain
--                decoding's time for a text of 200 tokens or more.
--
-- With a sequence, drafting pauses by seq:pause: the host makes the iterations of a pause without calling the policy.
--
--   a:pauses() -> pauses, n   begins an iteration. pauses: it must not draft; nothing more is called. With a sequence
--                            this is always false, and n is the number of iterations that the host has made since
-- For a policy that knows the whole time of an iteration, as rate does:
--   a:budget(pass_costs) -> ms   what the iteration may lose, by these costs (policy.pass_costs): all that is left.
--                            nil: less than its policy overhead and a row, which would be of no use. It sets a.longest,
--                            the ms of the longest target pass that the iteration may pay for
--   a:stake(ms, row, p) -> ms   how many of the `ms` that are left the rows of guesses may take. row: ms of the first
--                            row; p: the probability of the likeliest guess
--   a:spend(ms, plain, accepted)   ends the iteration: its ms, those of a plain pass, and the number of accepted nodes
--   a:may_resume() -> boolean  before a pause that may end at any time: whether the budget covers resuming and looking
--                            for guesses; if not, drafting pauses until it does
-- For a policy that counts drafts only, as cast does:
--   a:affords(context[, sequences[, experts]]), a:owes(), a:pass(rows[, k]), a:close(rows, accepted[, experts]):
--                            policies/COSTS.md
local ceil, max, min, setmetatable = math.ceil, math.max, math.min, setmetatable

local CREDIT, LOSS, SAVED = 10, 0.01, 32
local TEXT, SHORT = 0.05, 200
local STEP = 67 -- policy overhead of a draft pass for each sequence, in costs:cache_miss(0): 0.05 ms on a Zen 5
local OFTEN = 0.04 -- passes that tokens have added which are kept even if nothing is drafted
local SHARE = 0.5 -- the largest part of what is left that rows of one iteration may take, if they are several
local LossBudget = {}
LossBudget.__index = LossBudget

function LossBudget:pauses()
  local paused = self.seq and self.seq:paused() or 0
  self.resumes = self.resumes or paused > 0
  self.missed, self.tokens = self.missed + 1 + paused, self.tokens + 1 + paused
  self.pending = self.pending + self.loss * (1 + paused)
  if self.pending > OFTEN then self:credit(0) end
  self.pause, self.took = self.pause - 1, 0
  return self.pause >= 0, paused
end

-- Makes the next n iterations plain ones.
function LossBudget:pause_for(n)
  if self.seq then
    self.seq:pause(n)
  else
    self.pause = n
  end
end

-- The pair's balance as it is kept, bounded, whatever a damaged file says; nil: nothing is kept.
local function kept(costs)
  local now = costs:recall "loss_budget"
  return now and min(max(now[1], -SAVED), SAVED)
end

-- Adds passes, and those that are pending, to the pair's balance. It is read again first, since other sequences may
-- have changed it.
function LossBudget:credit(passes)
  local costs, pairs_own = self.costs, self.pairs_own
  passes, self.pending = passes + self.pending, 0
  pairs_own[1] = min((kept(costs) or pairs_own[1]) + passes, SAVED)
  costs:keep("loss_budget", pairs_own)
end

-- The pair's balance in passes.
function LossBudget:owns() return min(self.pairs_own[1] + self.pending, SAVED) end

-- How many passes may be lost now: the smaller of both limits. self.tokens includes the token of this iteration.
function LossBudget:left() return min(self:owns(), self.balance + TEXT * max(self.tokens, SHORT)) end

-- Whether that many passes may be lost. If not, drafting pauses until `later` passes (by default the same number) and
-- the cost of resuming may be lost: each token of the pause adds self.loss passes to the pair's limit, TEXT passes to
-- the text's.
function LossBudget:covers(passes, later)
  local covers = passes <= self:left()
  if not covers then
    local needs = (later or passes) + self.cold
    self:pause_for(ceil(max((needs - self:owns()) / self.loss, (needs - self.balance) / TEXT - self.tokens)) - 1)
  end
  return covers
end

-- Plain decoding has a policy overhead too (pass_costs.saved), which each token of this policy saves: it is credited
-- like LOSS. Resuming costs self.cold passes, because the policy's memory is no longer in the processor's caches.
function LossBudget:budget(pass_costs)
  local plain = pass_costs.plain
  self.loss = LOSS + pass_costs.saved / plain
  self.cold = pass_costs.resume / plain
  if self.resumes then
    self.balance, self.resumes = self.balance - self.cold, false
    self.pending = self.pending - self.cold
  end
  self.look = (pass_costs.verify[2] - plain) / plain
  if not self:covers(self.look) then return nil end
  local ms, verify = self:left() * plain, pass_costs.verify
  self.longest = verify[1] + self:stake(ms - pass_costs.overhead, verify[2] - verify[1], 1)
  return ms
end

function LossBudget:may_resume() return self:covers(self.cold + self.look, self.look) end

-- The part p of what is left, at most SHARE, since p is an estimate; but always one row. p is the stake that Kelly's
-- criterion allows if the possible gain is large compared with the stake (J. L. Kelly, "A new interpretation of
-- information rate", 1956). So something is left when the text begins to repeat itself.
function LossBudget.stake(_, ms, row, p) return min(ms, max(row, min(p, SHARE) * ms)) end

function LossBudget:spend(ms, plain, accepted) self:earn(accepted, ms / plain - 1) end

-- accepted: nodes, each worth one pass; lost: passes that the iteration took beyond a plain one.
function LossBudget:earn(accepted, lost)
  self.tokens, self.balance = self.tokens + accepted, self.balance + accepted - lost
  self:credit(accepted - lost + self.loss * accepted)
end

-- Whether the budget covers a first draft pass, in which the draft model also processes the tokens that it missed.
-- sequences: as in self.costs; experts: those that a pass of plain decoding reads.
function LossBudget:affords(context, sequences, experts)
  local costs = self.costs
  self.context, self.sequences = context, sequences or costs:sequences()
  self.once = costs:target(1, context, self.sequences, experts)
  self.overhead = STEP * costs:cache_miss(0) * self.sequences
  return self:covers((self:opening(self.sequences) + self.overhead) / self.once)
end

-- Cost in ms of the first draft pass of an iteration, in which the draft model also processes the tokens that it
-- missed. k of the sequences share it, and the others wait for it.
function LossBudget:opening(k)
  local costs, context = self.costs, self.context
  local ms = costs:first(context, k)
  if costs:block() > 0 then
    ms = ms + costs:read(self.missed)
  else
    ms = ms + costs:draft(self.missed, context, k) - costs:draft(1, context, k)
  end
  return ms * (self.sequences / k)
end

-- Whether drafts have added less than they cost in this text.
function LossBudget:owes() return self.balance < 0 end

-- Counts a draft pass over this number of rows, shared by k of the sequences (default: all). A block head makes one in
-- an iteration.
function LossBudget:pass(rows, k)
  k = k or self.sequences
  if self.took > 0 and self.costs:block() > 0 then return end
  local ms = self.took == 0 and self:opening(k) or self.costs:draft(rows, self.context, k) * (self.sequences / k)
  self.took, self.missed = self.took + (ms + self.overhead) / self.once, 0
end

-- Ends an iteration: rows verified, the root's included; nodes accepted; distinct experts that the pass read.
function LossBudget:close(rows, accepted, experts)
  if self.took == 0 then return end
  self:earn(accepted, self.took + self.costs:target(rows, self.context, self.sequences, experts) / self.once - 1)
end

return function(costs, seq)
  return setmetatable({ costs = costs, seq = seq, loss = LOSS, cold = 0, resumes = true, balance = 0,
                        pairs_own = { kept(costs) or CREDIT }, pending = 0, tokens = 0, pause = 0, missed = 0,
                        took = 0 }, LossBudget)
end
