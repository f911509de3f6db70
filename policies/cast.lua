-- CAST (Cost-Aware Speculative Tree, 2025): EAGLE-2's tree, whose breadth, depth and number of verified nodes depend on
-- the costs of passes on this machine, for all sequences of a batch together.
--
-- u[k] is the sum of the k largest p of a layer's nodes, averaged over the batch; c[k] is the cost of k nodes in each
-- tree, relative to a target pass over the roots. The paper's select(u, c, C) is the largest j with (u[j]-u[i]) /
-- (c[j]-c[i]) >= C for every i < j. Since c increases strictly, that is the last j at which u[j] - C c[j] is largest.
local policy = require "dt.policy"

local Cast = policy.define {
  name   = "cast",
  doc    = "EAGLE-2's tree, its breadth, depth and size chosen by measured costs",
  scope  = "batch",
  uses   = { costs = true, calibrate = true },
  params = {
    { "breadth", true, doc = "expand as many nodes of a layer as pay; off: the best top_k" },
    { "depth", true, doc = "draft a further layer only if it pays; off: always max_depth layers" },
    { "rerank", true, doc = "verify as many nodes as pay; off: the best total" },
    { "allow_empty", true, doc = "draft nothing while drafts do not pay; off: the paper's rule" },
    { "C", 4.0, min = 0, doc = "probability that drafting must add for the cost of a target pass" },
    { "C1", nil, type = "number", min = 0, doc = "the same for breadth (not set: C)" },
    { "C2", nil, type = "number", min = 0, doc = "for depth (not set: C)" },
    { "C3", nil, type = "number", min = 0, doc = "for rerank (not set: C)" },
    { "top_k", 12, min = 1, max = 32, doc = "maximum number of nodes expanded per layer, and of children of each" },
    { "max_depth", 13, min = 1, max = 64, doc = "maximum number of layers" },
    { "total", 72, min = 1, max = 256, doc = "maximum number of nodes verified" },
    { "R", 16, min = 1, max = 1000, doc = "recent ratios between neighbouring layers that the depth rule averages" },
  },
  presets = {
    paper = { allow_empty = false }, -- 13B and 70B
    paper_8b = { allow_empty = false, C = 3.0 },
    paper_batch8 = { allow_empty = false, C = 2.5, max_depth = 9 },
  },
}

function Cast:init()
  self.level, self.best = {}, {} -- by tree: nodes to expand; the best of all nodes
  self.loss_budget, self.experts = policy.loss_budget(self.costs), policy.experts(self.costs)
  self.ratios = {} -- [i] u of layer i + 1 over u of layer i, in recent iterations
  for i = 0, self.max_depth do
    self.ratios[i] = policy.window(self.R)
    self.ratios[i]:push(1)
  end
end

-- The paper's select over the nodes lists[b][1..n] of the batch's trees, where cost(k) is c[k]. Returns the number
-- chosen in each tree, and u and c of that number.
local function select(batch, lists, n, cost, C, allow_empty)
  local u, most, j, u_j, c_j = 0, -math.huge, 0, 0, 0
  if allow_empty then most, c_j = -C * cost(0), cost(0) end
  for k = 1, n do
    for b = 1, #batch do
      local node = lists[b][k]
      if node then u = u + batch[b]:p(node) / #batch end
    end
    local c = cost(k)
    if u - C * c >= most then most, j, u_j, c_j = u - C * c, k, u, c end
  end
  return j, u_j, c_j
end

-- Drafts from n nodes of each tree's level, and makes the best of their children the next level. Returns the size of
-- the largest level.
local function expand(batch, level, n, top_k)
  local most = 0
  batch:draft_step(level, n)
  for b = 1, #batch do
    local tree, list = batch[b], level[b]
    local first = tree:size() + 1
    for i = 1, math.min(n, #list) do tree:branch(list[i], top_k) end
    most = math.max(most, #tree:best(top_k, first, tree:size(), list))
  end
  return most
end

function Cast:draft(batch)
  local loss_budget = self.loss_budget
  if loss_budget:pauses() and self.allow_empty then return end
  local costs, top_k, level, best, B = self.costs, self.top_k, self.level, self.best, #batch
  local context, layers = 0, 0
  for b = 1, B do
    local tree = batch[b]
    tree:limit(4096)
    context, layers = math.max(context, tree.seq:length()), math.max(layers, tree:depth_room())
    level[b], best[b] = { tree.root }, best[b] or {}
  end
  local experts = self.experts
  if not loss_budget:affords(context, B, experts:expected(1, B)) and self.allow_empty then return end
  if loss_budget:owes() and self.allow_empty then layers = math.min(layers, 1) end
  local once = costs:target(1, context, B, experts:expected(1, B))
  local function draft_cost(k) return k > 0 and costs:draft(k, context, B) / once or 0 end
  local function target_cost(k) -- the pass includes the root's row
    return costs:target(k + 1, context, B, experts:expected(k + 1, B)) / once
  end
  local n, u, c = 1, 1, draft_cost(1)
  for i = 0, math.min(self.max_depth, layers) - 1 do
    local asked = self.depth and (i > 0 or self.allow_empty)
    if n == 0 or (asked and self.ratios[i]:mean() * u < (self.C2 or self.C) * c) then
      if i == 0 then self.ratios[0]:push(1) end -- nothing is learned without drafts, so try again at some time
      break
    end
    loss_budget:pass(n)
    local candidates, below = expand(batch, level, n, top_k), u
    if candidates == 0 then break end -- the draft model's context is full
    local C1 = self.breadth and (self.C1 or self.C) or 0
    n, u, c = select(batch, level, candidates, draft_cost, C1, self.breadth and self.allow_empty)
    self.ratios[i]:push(u / below)
  end
  local most = 0
  for b = 1, B do most = math.max(most, #batch[b]:best(self.total, 1, batch[b]:size(), best[b])) end
  if self.rerank then
    local C3 = self.C3 or self.C
    -- only drafts that are verified show what they are worth
    if loss_budget:owes() and self.allow_empty then C3 = math.min(C3, 1) end
    most = select(batch, best, most, target_cost, C3, self.allow_empty)
  end
  for b = 1, B do batch[b]:keep(most) end
end

function Cast:observe(_, outs)
  local rows, all, accepted, B = 1, 0, 0, #outs
  for b = 1, B do
    local out = outs[b]
    rows, all, accepted = math.max(rows, out.drafted + 1), all + out.drafted + 1, accepted + out.accepted / B
  end
  self.loss_budget:close(rows, accepted, outs[1].experts_read)
  self.experts:observe(all / B, outs[1], B)
end

return Cast
