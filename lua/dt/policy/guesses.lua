-- policy.guesses(pass_costs, seq): those of the draft model or head, or of one of two (either.lua), and whether a pass
-- for them is worth its time. That is learned from the passes before: what they brought per token that was expected to
-- reach them, less what the rows for it cost. R is always the tokens per millisecond that are reached without.
--
--   g:begin(budget, paused)  an iteration begins, after that many paused ones; its passes and a row may take
--                            `budget` ms (g.budget), of which passes have taken g.ms
--   g:worth(R, open, n, depth)   whether a pass over a level of n nodes at a depth is worth its time, where so many
--                            tokens (`open`, a part of one) are expected to reach it; of the first, whether what it
--                            gains repays the reading of what the draft model has not read
--   g:draft(tree, level, n, open)   that pass
--   g:least(R) -> alpha      from which a node is worth its row of the next pass
--   g:settle(R, alpha, best, k)   at the end: best[1..k] are the nodes to verify, likeliest first, as likely as alpha
--                            says; g.pass[node] is the number of its pass, 0 of what is no guess
--   g:quiet(R) -> n          then: in the next n iterations no pass is worth its time, R being the least that can be
--   g:observe(tree, out)     learns how far, and how often, guesses come true
local huge, max, min, setmetatable = math.huge, math.max, math.min, setmetatable

local NEAR = 2      -- levels drafted beyond as many as were accepted of late: errors multiply with the depth
local FADES = 0.9   -- what is left of "of late" after an iteration
-- How often the likeliest guess is right before anything is known: rather too often, since trying it shows the truth.
local RIGHT = { greedy = 0.8, drawn = 0.7 }
local DEEPEST = 8   -- levels of the chain that a new pair is expected to gain with
local KNOWN = 3     -- passes that the expectation of a new pair stands for,
local RECALLED = 8  -- and what earlier texts have taught, at most
local FORGET = 0.01 -- of what is learned, in each iteration with drafts
local PAUSE, LONGEST_PAUSE = 4, 64 -- iterations without drafts before one to see: at first; twice as many each time
local SOON = 16     -- iterations after which a draft that was not asked yet is looked at again
local STATE = 9      -- numbers of policy.sharpen's state
local LITTLE = 0.01 -- a pass that brings less than that brings that

local function clip(x, low, high) return max(low, min(x, high)) end

-- What is expected of a new pair, if each guess of a chain is right with probability p and nothing is reached without
-- drafts: what the first pass of the best chain brings, less the time of the passes below it; and what one of these
-- brings.
local function expected(pass_costs, model, p)
  local verify, draft = pass_costs.verify, pass_costs.models[model][1].draft
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
end

-- What is expected follows the costs: what a busy machine taught may be corrected while a text runs. As long as the
-- draft was not asked, and earlier texts have taught nothing, this is all that is known of it.
function Guesses:expect()
  local promise, deeper = expected(self.pass_costs, self.model, self.right)
  if self.untried then self.brings[1], self.brings[2] = promise, deeper end
  self.promise, self.expected, self.revision = promise, deeper, self.pass_costs.revision
end

-- How many sequences are expected to share a first pass, or (which = 2) another one: as many as did the last time.
function Guesses:sharers(which) return min(self.shared[which], self.pass_costs.sequences) end

-- ms of the next pass, over n nodes, shared by k sequences.
function Guesses:takes(n, k)
  local cost = self.pass_costs.models[self.model][k]
  return self.passes == 0 and cost.first or cost.draft[n]
end

-- What the first pass of an iteration brings, less its time; brings: instead of what it brought before.
function Guesses:gain(R, open, brings)
  return (brings or self.brings[1]) * open - R * self.pass_costs.models[self.model][self:sharers(1)].first
end

function Guesses:worth(R, open, n, depth)
  local pass_costs = self.pass_costs
  local row = pass_costs.verify[2] - pass_costs.verify[1]
  local most = self:takes(n, 1) + row -- others may not share it after all
  if self.ms + most > self.budget then return false end
  if self.passes > 0 then
    return depth < NEAR + self.reach and self.brings[2] * open >= R * self:takes(n, self:sharers(2))
  end
  return self:pays(R, open, self.idle >= self.pause)
end

-- Whether a first pass is worth its time. tries: to see what it brings, and all sequences with this one, which paused
-- as long.
function Guesses:pays(R, open, tries)
  local brings = tries and max(self.brings[1], self.promise) or self.brings[1]
  local gain = brings * open - R * self:takes(1, tries and self.pass_costs.sequences or self:sharers(1))
  return gain >= 0 and self:repays(R, gain)
end

function Guesses:quiet(R)
  if self.passes > 0 or self:pays(R, 1, self.idle >= self.pause) then return 0 end
  local left = self.pass_costs.until_length + 1 - self.seq:length() -- costs may change then
  if self.untried and self.pass_costs.revision > 0 then left = min(left, SOON) end -- learned ones soon
  return self.idle < self.pause and self:pays(R, 1, true) and min(left, self.pause - self.idle) or left
end

-- Whether passes that gain so many tokens each repay, before the text ends, the reading of all that the draft model has
-- not read yet: the prompt at first. R * verify[1] is the tokens of a pass.
function Guesses:repays(R, gain)
  local pass_costs, seq = self.pass_costs, self.seq
  return gain * seq:left() / (R * pass_costs.verify[1]) >= R * pass_costs:reading(self.model, seq:unread(self.model))
end

function Guesses:draft(tree, level, n, open)
  local passes, shared = self.passes + 1, self.shared
  self.untried = false
  if passes == 1 then self.sharpen:apply(tree) end
  local sharers = tree:draft_step(level, n, self.options)
  local ms = self:takes(n, sharers)
  shared[min(passes, 2)], self.passes, self.ms = sharers, passes, self.ms + ms
  self.open[passes], self.net[passes], self.took[passes] = open, 0, ms
end

function Guesses:least(R)
  local draft = self.pass_costs.models[self.model][self:sharers(2)].draft
  return R * (draft[2] - draft[1]) / max(self.brings[2], LITTLE)
end

-- Learns what the first pass of an iteration (which = 1), or another one, has brought.
function Guesses:learn(which, brought)
  local asked = self.asked[which] + 1
  self.asked[which] = asked
  self.brings[which] = self.brings[which] + (FORGET + 1 / asked) * (brought - self.brings[which])
end

-- brings[2] is of a pass below the first; where none was made, what is known of it fades. brings[1] is of the first and
-- all below, less their time.
function Guesses:settle(R, alpha, best, k)
  local passes, net, brings, verify, below = self.passes, self.net, self.brings, self.pass_costs.verify, 0
  if passes == 0 then -- who asks nothing learns nothing
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
  self.idle = 0
  self.pause = self:gain(R, 1) < 0 and min(2 * self.pause, LONGEST_PAUSE) or PAUSE
end

function Guesses:observe(tree, out)
  self.reach = max(FADES * self.reach, out.accepted)
  if self.passes == 0 then return end
  self.sharpen:observe(tree)
  self:keep()
end

function Guesses:keep()
  local known, brings, asked = self.known, self.brings, self.asked
  self.sharpen:state(known)
  known[STATE + 1], known[STATE + 2], known[STATE + 3], known[STATE + 4] = brings[1], brings[2], asked[1], asked[2]
  self.pass_costs.costs:keep(self.name, known)
end

-- What earlier texts taught (costs:keep): the numbers of policy.sharpen, brings, and asked. A draft's calibration
-- (models/HEADS.md) has only how often the likeliest guess is right after the first of these.
local function recall(pass_costs, name)
  local known = pass_costs.costs:recall(name)
  local n = known and #known
  if n == STATE + 1 then return known, clip(known[n], 0, 1) end
  if n ~= STATE + 4 then return nil end
  return known, nil, { clip(known[n - 3], -DEEPEST, DEEPEST), clip(known[n - 2], -1, 1) },
    { clip(known[n - 1], 0, RECALLED), clip(known[n], 0, RECALLED) }
end

return function(pass_costs, seq, sharpen, model)
  local name = "guesses" .. model
  local known, right, brings, asked = recall(pass_costs, name)
  local g = setmetatable({
    pass_costs = pass_costs, seq = seq, model = model, options = { model = model }, name = name,
    sharpen = sharpen(true, known), known = known or {},
    right = right or seq.coupled and RIGHT.drawn or RIGHT.greedy,
    untried = not brings, brings = brings or {}, asked = asked or { KNOWN, KNOWN },
    idle = 0, pause = PAUSE, reach = 0, passes = 0, ms = 0,
    shared = { huge, huge }, -- as many as there are, at first
    pass = {}, open = {}, net = {}, took = {}, -- by node; by pass: what reached it, what it brought, its time
  }, Guesses)
  g:expect()
  return g
end
