-- policy.guesses(pass_costs, seq): decides whether a pass of the draft model or head pays for itself, and makes it.
--
-- What a pass will add is not known before it runs, so it is estimated from earlier passes. For each of two kinds of
-- passes, `brings` is an average of the tokens that a pass added for each token that was expected to reach it, less the
-- cost of its rows:
--
--   brings[1]   the first pass of an iteration together with all later ones, less the cost of the later ones
--   brings[2]   one of the later passes
--
-- A block head guesses all levels in the first pass. Its width, the number of levels that it is asked for, maximizes
--   levels[1] + .. + levels[width] - R * (ms of a pass of that width)
-- where levels[d] is an average like `brings`, of level d. Later passes then only take the guesses of one more level.
--
-- A pass runs if brings * open >= R * (ms of the pass), where open is the probability that the text reaches its level,
-- and R the pace in tokens per ms. What a pass added is counted by alpha, the probability that a node is accepted, not
-- by what was accepted: that varies less, and policy.calibration calibrates alpha by what was accepted.
--
--   g:begin(budget, paused)  begins an iteration, after `paused` iterations of a pause; budget: the ms that its draft
--                            passes and a row may take. g.budget is that number, g.ms the time of its passes so far
--   g:worth(R, open, n, depth) -> boolean   whether a pass over a level of n nodes at this depth pays for itself. First
--                            passes must also pay for the tokens that the draft model has yet to process: the prompt
--   g:draft(tree, level, n, open, R)   makes that pass
--   g:least(R) -> alpha      the smallest alpha with which a node is worth its row of the next draft pass
--   g:settle(R, alpha, best, k)   after the drafting: learns what the passes added. best[1..k]: the nodes to verify, by
--                            falling alpha; g.pass[node]: the number of the pass that suggested it, 0 for a copy
--   g:quiet(R) -> n          then: the number of following iterations in which no pass will pay for itself; R: a lower
--                            bound of the pace, plain decoding's
--   g:log()                  then: if there was no pass, logs (seq:log) what one was expected to cost and to save, and
--                            the time of the tokens that the draft model has yet to process, all in ms
--   g:observe(tree, out)     learns from what was accepted: the calibration, and how deep trees are useful
local huge, max, min, setmetatable = math.huge, math.max, math.min, setmetatable

local NEAR = 2      -- levels drafted below the depth accepted lately: errors of probabilities multiply with the depth
local FADES = 0.9   -- the depth accepted lately is multiplied by this in each iteration
-- How often the likeliest guess of an unknown draft is right. Optimistic, since a trial then shows the truth.
local RIGHT = { greedy = 0.8, sampled = 0.7 }
local DEEPEST = 8   -- the longest chain considered in what a new pair is expected to add
local KNOWN = 3     -- the expectation for a new pair counts as this many passes
local RECALLED = 8  -- what earlier texts taught counts as at most this many passes
local FORGET = 0.01 -- the least weight of a new pass in the averages, in addition to 1 / (number of passes)
-- Iterations without a draft pass before a trial: PAUSE at first, doubled up to LONGEST_PAUSE while passes do not pay.
local PAUSE, LONGEST_PAUSE = 4, 64
local SOON = 16     -- iterations after which a draft that was never used is considered again: costs may have changed
local STATE = 9      -- how many numbers the state of policy.calibration has
local RETRY = 0.002 -- weight of what is hoped of a level of a block that was not asked for, in its average
local LITTLE = 0.01 -- lower bound of brings[2] as a divisor
local NAME = "guesses1" -- of what is kept for later texts, and of a calibration.json

local function clip(x, low, high) return max(low, min(x, high)) end

-- The expected `brings` of a new pair at plain decoding's pace, if each guess of a chain is right with probability p:
-- of the first pass, with the best length of the chain,
--   max over d of  p + p^2 + ... + p^d - (ms of d rows and of d - 1 later passes) / (ms of a plain pass)
-- and of a later pass, p less the cost of a row.
local function expected(pass_costs, p)
  local verify, draft = pass_costs.verify, pass_costs.drafting[1].draft
  local accepted, best = 0, 0
  for depth = 1, draft and DEEPEST or 0 do
    accepted = accepted + p ^ depth
    best = max(best, accepted - (verify[depth + 1] - verify[1] + (depth - 1) * draft[1]) / pass_costs.plain)
  end
  return best, max(0, p - pass_costs.row[1] / pass_costs.plain)
end

local Guesses = {}
Guesses.__index = Guesses

function Guesses:begin(budget, paused)
  self.passes, self.ms, self.budget, self.idle = 0, 0, budget, self.idle + paused
  if self.revision ~= self.pass_costs.revision then self:expect() end
  self.width, self.depth = nil, 0
end

-- Computes what a new pair is expected to add, again when costs have changed: what was learned on a busy machine may be
-- corrected later. Until the draft is used, if earlier texts have taught nothing, this is all that is known about it.
function Guesses:expect()
  local promise, deeper = expected(self.pass_costs, self.right)
  if self.untried then self.brings[1], self.brings[2] = promise, deeper end
  self.promise, self.expected, self.revision = promise, deeper, self.pass_costs.revision
  local block = self.pass_costs.drafting[1].block
  for d = block and #self.levels + 1 or 1, block or 0 do self.levels[d] = self:hope(d) end
end

-- What level d of a block is expected to bring before it was tried: the probability that the text reaches it, and that
-- its likeliest guess is right, less the cost of its row.
function Guesses:hope(d) return max(0, self.right ^ d - self.pass_costs.row[d] / self.pass_costs.plain) end

-- How many levels below the root a block head is asked for in this iteration, if k sequences share its pass, and its
-- guesses are first needed at `depth`; nil: it is none, or has no guesses so deep.
function Guesses:wide(R, k)
  local cost, best, sum = self.pass_costs.drafting[k], nil, 0
  if self.width then return self.width end
  for d = self.depth + 1, cost.block or 0 do
    sum = sum + self.levels[d]
    local gain = sum - R * cost.pass[d]
    if not best or gain > best then best, self.width = gain, d end
  end
  return self.width
end

-- How many sequences will share the first pass of an iteration (which = 1) or a later one (2): as many as last time.
function Guesses:sharers(which) return min(self.shared[which], self.pass_costs.sequences) end

-- Cost in ms of the first pass of an iteration, if k sequences share it.
function Guesses:opening(R, k)
  local cost, width = self.pass_costs.drafting[k], self:wide(R, k)
  return width and cost.pass[width] or cost.first
end

-- Cost in ms of the next pass, over n nodes, if k sequences share it.
function Guesses:takes(R, n, k)
  return self.passes == 0 and self:opening(R, k) or self.pass_costs.drafting[k].draft[n]
end

-- Tokens that the first pass of an iteration is expected to add beyond its cost. brings: used instead of brings[1].
function Guesses:gain(R, open, brings)
  return (brings or self.brings[1]) * open - R * self:opening(R, self:sharers(1))
end

function Guesses:worth(R, open, n, depth)
  local pass_costs = self.pass_costs
  if self.passes == 0 then
    self.width, self.depth = nil, depth
    local block = pass_costs.drafting[1].block
    if block and depth >= block then return false end
  end
  local row = pass_costs.verify[2] - pass_costs.verify[1]
  local most = self:takes(R, n, 1) + row -- the budget must cover it even if no other sequence shares it
  if self.ms + most > self.budget then return false end
  if self.passes > 0 then
    return depth < (self.width or NEAR + self.reach) and self.brings[2] * open >= R * self:takes(R, n, self:sharers(2))
  end
  return self:pays(R, open, self.idle >= self.pause)
end

-- Whether a first pass pays for itself. tries: as a trial after a pause. A trial counts at least what a new pair is
-- expected to add, and is shared by all sequences, which have paused for the same time.
function Guesses:pays(R, open, tries)
  local brings = tries and max(self.brings[1], self.promise) or self.brings[1]
  local gain = brings * open - R * self:takes(R, 1, tries and self.pass_costs.sequences or self:sharers(1))
  return gain >= 0 and self:repays(R, gain)
end

-- 0 while passes may pay. Otherwise the time until the next trial or until costs may have changed.
function Guesses:quiet(R)
  if self.passes > 0 or self:pays(R, 1, self.idle >= self.pause) then return 0 end
  local left = self.pass_costs.until_length + 1 - self.seq:length() -- until costs change with the length of the text
  if self.untried and self.pass_costs.revision > 0 then left = min(left, SOON) end -- they may be corrected soon
  return self.idle < self.pause and self:pays(R, 1, true) and min(left, self.pause - self.idle) or left
end

function Guesses:log()
  local pass_costs, seq = self.pass_costs, self.seq
  if self.passes > 0 or not pass_costs.drafting[1].draft then return end
  seq:log("draft_costs", self:takes(1 / pass_costs.plain, 1, self:sharers(1)))
  seq:log("draft_saves", self.brings[1] * pass_costs.plain)
  seq:log("draft_reads", pass_costs:reading(seq:unread()))
end

-- Whether passes that add `gain` tokens each repay, before the text ends, the time in which the draft model processes
-- the tokens that it has not seen: at first, the whole prompt. The text has about seq:left() / (R * verify[1]) more
-- iterations, since R * verify[1] is the number of tokens in the time of one target pass.
function Guesses:repays(R, gain)
  local pass_costs, seq = self.pass_costs, self.seq
  return gain * seq:left() / (R * pass_costs.verify[1]) >= R * pass_costs:reading(seq:unread())
end

function Guesses:draft(tree, level, n, open, R)
  local passes, shared = self.passes + 1, self.shared
  self.untried = false
  if passes == 1 then self.calibration:apply(tree) end
  self.options.width = self.width
  local sharers = tree:draft_step(level, n, self.options)
  local ms = self:takes(R, n, sharers)
  shared[min(passes, 2)], self.passes, self.ms = sharers, passes, self.ms + ms
  self.open[passes], self.net[passes], self.took[passes] = open, 0, ms
end

function Guesses:least(R)
  local draft = self.pass_costs.drafting[self:sharers(2)].draft
  return R * (draft[2] - draft[1]) / max(self.brings[2], LITTLE)
end

-- Adds to brings[which] what a pass brought: an average with weight 1 / (number of passes) + FORGET for the new one.
function Guesses:learn(which, brought)
  local asked = self.asked[which] + 1
  self.asked[which] = asked
  self.brings[which] = self.brings[which] + (FORGET + 1 / asked) * (brought - self.brings[which])
end

-- net[p]: tokens that pass p added: sum of alpha - R * (ms of the row) over its nodes among best[1..k].
-- brings[2] learns net[p] / open[p] from each later pass; in an iteration without one it moves back to the expectation
-- for a new pair, so that a later pass will be tried again. brings[1] learns the net of all passes less the cost of the
-- later ones.
function Guesses:settle(R, alpha, best, k)
  local passes, net, brings, verify, below = self.passes, self.net, self.brings, self.pass_costs.verify, 0
  if passes == 0 then -- without a pass there is nothing to learn
    self.idle = self.idle + 1
    return
  end
  for i = 1, k do
    local by = self.pass[best[i]]
    if by > 0 then net[by] = net[by] + alpha[best[i]] - R * (verify[i + 1] - verify[i]) end
  end
  if passes == 1 then brings[2] = brings[2] + FORGET * (self.expected - brings[2]) end
  for i = 2, passes do
    self:learn(2, net[i] / self.open[i])
    below = below + net[i] - R * self.took[i]
  end
  self.brought = (net[1] + below) / self.open[1]
  self:learn(1, self.brought)
  if self.width then self:learn_levels(net) end
  self.idle = 0
  self.pause = self:gain(R, 1) < 0 and min(2 * self.pause, LONGEST_PAUSE) or PAUSE
end

-- Levels that the block had bring their net, 0 if they were not taken. The others move towards what the level above
-- suggests, so that they will be tried again.
function Guesses:learn_levels(net)
  local levels, weight = self.levels, FORGET + 1 / self.asked[1]
  for d = self.depth + 1, #levels do -- copies took the place of those above
    local pass = d - self.depth
    local brought = pass <= self.passes and net[pass] / self.open[1] or 0
    if d <= self.width then
      levels[d] = levels[d] + weight * (brought - levels[d])
    else
      levels[d] = levels[d] + RETRY * (self.right * levels[d - 1] - levels[d])
    end
  end
end

function Guesses:observe(tree, out)
  self.reach = max(FADES * self.reach, out.accepted)
  if self.passes == 0 then return end
  self.calibration:observe(tree)
  self:keep()
end

function Guesses:keep()
  local known, brings, asked = self.known, self.brings, self.asked
  self.calibration:state(known)
  known[STATE + 1], known[STATE + 2], known[STATE + 3] = self.right, brings[1], brings[2]
  known[STATE + 4], known[STATE + 5] = asked[1], asked[2]
  self.pass_costs.costs:keep(NAME, known)
end

-- Reads what earlier texts taught (costs:keep): the state of policy.calibration, the share of likeliest guesses that
-- are right, brings and asked. The calibration that comes with a draft (calibration.json, models/HEADS.md) ends with
-- that share. Returns the list, the share, brings and asked; nil for what is unknown.
local function recall(pass_costs)
  local known = pass_costs.costs:recall(NAME)
  local n = known and #known
  if n ~= STATE + 1 and n ~= STATE + 5 then return nil end
  local right = clip(known[STATE + 1], 0, 1)
  if n == STATE + 1 then return known, right end
  return known, right, { clip(known[n - 3], -DEEPEST, DEEPEST), clip(known[n - 2], -1, 1) },
    { clip(known[n - 1], 0, RECALLED), clip(known[n], 0, RECALLED) }
end

return function(pass_costs, seq, calibration)
  local known, right, brings, asked = recall(pass_costs)
  local g = setmetatable({
    pass_costs = pass_costs, seq = seq, options = {}, calibration = calibration(true, known), known = known or {},
    right = right or seq.coupled and RIGHT.sampled or RIGHT.greedy,
    untried = not brings, brings = brings or {}, asked = asked or { KNOWN, KNOWN },
    idle = 0, pause = PAUSE, reach = 0, passes = 0, ms = 0,
    shared = { huge, huge }, -- at first, all sequences
    levels = {},
    pass = {}, open = {}, net = {}, took = {}, -- the pass of each node; open, net and ms of each pass
  }, Guesses)
  g:expect()
  return g
end
