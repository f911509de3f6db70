-- policy.loss_budget(costs[, seq]): limits the time that drafts may lose. Unit: a target pass over the root alone.
-- Two limits hold together:
--
--   the pair's   begins with CREDIT passes. Each token adds LOSS, each accepted node adds 1, and the time of drafts is
--                subtracted; it holds at most SAVED. It goes on across texts (costs:keep); with a table of costs each
--                text begins with CREDIT. Beyond the opening credit, drafts therefore cost at most 1 % of plain
--                decoding's time over all texts.
--   the text's   a single text may lose TEXT of its tokens, or of SHORT tokens if it is shorter: at most 5 % of plain
--                decoding's time for a text of 200 tokens or more.
--
-- With a sequence, the host runs the iterations of a pause (seq:pause) without calling the policy.
--
--   a:pauses() -> pauses, n  an iteration begins. If the first result is true, it must not draft, and nothing else is
--                            called. With a sequence it is always false, and n is the number of iterations that the
--                            host ran before this one
-- For a policy that knows the whole time of an iteration, as rate does:
--   a:budget(pass_costs) -> ms   what the iteration may lose by policy.pass_costs: all that is left. nil: less
--                            than its overhead and a row, the least that is of use. Then a.longest is the time of the
--                            longest target pass that it may stake
--   a:stake(ms, row, p) -> ms   of `ms` that are left, how many may go for rows of guesses. The first row takes `row`
--                            ms, the likeliest guess is right with probability p
--   a:spend(ms, plain, accepted)   it ends: its ms in all, and the number of accepted nodes
--   a:may_resume()           before a pause that may end at once: whether looking again afterwards can be afforded. If
--                            not, it pauses until it can
-- For a policy that counts drafts only, as cast does:
--   a:affords(context[, sequences[, experts]]), a:owes(), a:pass(rows[, k]), a:close(rows, accepted[, experts]):
--                            policies/COSTS.md
local ceil, max, min, setmetatable = math.ceil, math.max, math.min, setmetatable

local CREDIT, LOSS, SAVED = 10, 0.01, 32
local TEXT, SHORT = 0.05, 200
local STEP = 67 -- overhead of a draft pass, for each sequence, in costs:cache_miss(0): 0.05 ms on a Zen 5
local SHARE = 0.5 -- of what is left: the most that one iteration stakes, if it is more than a row
local LossBudget = {}
LossBudget.__index = LossBudget

function LossBudget:pauses()
  local paused = self.seq and self.seq:paused() or 0
  self.resumes = self.resumes or paused > 0
  self.missed, self.tokens = self.missed + 1 + paused, self.tokens + 1 + paused
  self:credit(self.loss * (1 + paused))
  self.pause, self.took = self.pause - 1, 0
  return self.pause >= 0, paused
end

-- The next n iterations are plain ones.
function LossBudget:pause_for(n)
  if self.seq then
    self.seq:pause(n)
  else
    self.pause = n
  end
end

-- Adds passes to the pair's budget, which other sequences may have changed since.
function LossBudget:credit(passes)
  local costs, pairs_own = self.costs, self.pairs_own
  local now = costs:recall "loss_budget"
  pairs_own[1] = min(max((now or pairs_own)[1], -SAVED) + passes, SAVED) -- whatever a file holds, it recovers
  costs:keep("loss_budget", pairs_own)
end

-- How many passes may be lost. The token that each iteration brings is among self.tokens already.
function LossBudget:left() return min(self.pairs_own[1], self.balance + TEXT * max(self.tokens, SHORT)) end

-- Whether this many passes may be lost. If not, it pauses until they, or `later`, and resuming are affordable.
function LossBudget:covers(passes, later)
  local covers = passes <= self:left()
  if not covers then
    local needs = (later or passes) + self.cold
    self:pause_for(ceil(max((needs - self.pairs_own[1]) / self.loss, (needs - self.balance) / TEXT - self.tokens)) - 1)
  end
  return covers
end

function LossBudget:budget(pass_costs)
  local plain = pass_costs.plain
  self.loss = LOSS + pass_costs.saved / plain
  self.cold = pass_costs.resume / plain
  if self.resumes then
    self.balance, self.resumes = self.balance - self.cold, false
    self:credit(-self.cold)
  end
  self.look = (pass_costs.verify[2] - plain) / plain
  if not self:covers(self.look) then return nil end
  local ms, verify = self:left() * plain, pass_costs.verify
  self.longest = verify[1] + self:stake(ms - pass_costs.overhead, verify[2] - verify[1], 1)
  return ms
end

function LossBudget:may_resume() return self:covers(self.cold + self.look, self.look) end

-- Of what is left the part p (Kelly, "A new interpretation of information rate", 1956, for a gain that is large beside
-- the stake), SHARE at most, since p is an estimate; or a row.
function LossBudget.stake(_, ms, row, p) return min(ms, max(row, min(p, SHARE) * ms)) end

function LossBudget:spend(ms, plain, accepted) self:earn(accepted, ms / plain - 1) end

function LossBudget:earn(accepted, lost)
  self.tokens, self.balance = self.tokens + accepted, self.balance + accepted - lost
  self:credit(accepted - lost + self.loss * accepted)
end

-- Whether there is enough for a first draft pass, in which the draft model sees what it missed; sequences: as of costs;
-- experts: of plain decoding's pass.
function LossBudget:affords(context, sequences, experts)
  local costs = self.costs
  self.context, self.sequences = context, sequences or costs:sequences()
  self.once = costs:target(1, context, self.sequences, experts)
  self.overhead = STEP * costs:cache_miss(0) * self.sequences
  return self:covers((self:opening(self.sequences) + self.overhead) / self.once)
end

-- ms of an iteration's first draft pass, in which the draft model sees what it missed. k of the sequences share it, and
-- the others wait for it.
function LossBudget:opening(k)
  local costs, context = self.costs, self.context
  local ms = costs:first(context, k) + costs:draft(self.missed, context, k) - costs:draft(1, context, k)
  return ms * (self.sequences / k)
end

-- Whether drafts have brought less so far than they cost.
function LossBudget:owes() return self.balance < 0 end

-- A draft pass over so many rows, shared by k of the sequences (not given: all).
function LossBudget:pass(rows, k)
  k = k or self.sequences
  local ms = self.took == 0 and self:opening(k) or self.costs:draft(rows, self.context, k) * (self.sequences / k)
  self.took, self.missed = self.took + (ms + self.overhead) / self.once, 0
end

-- An iteration ends in which so many rows were verified, so many nodes accepted, and so many distinct experts read.
function LossBudget:close(rows, accepted, experts)
  if self.took == 0 then return end
  self:earn(accepted, self.took + self.costs:target(rows, self.context, self.sequences, experts) / self.once - 1)
end

return function(costs, seq)
  return setmetatable({ costs = costs, seq = seq, loss = LOSS, cold = 0, resumes = true, balance = 0,
                        pairs_own = { CREDIT }, tokens = 0, pause = 0, missed = 0, took = 0 }, LossBudget)
end
