-- CaDDTree (2026): chooses the structure and size of each tree for the most expected tokens per time of drafting and
-- verifying. The n likeliest nodes together are expected to bring 1 + the sum of their p. If each further row makes a
-- verify pass more expensive by more, tokens over time rise with n up to a maximum and fall after it, so the first fall
-- ends the search. The paper gets the guesses of all levels from one pass; a draft model pays for each level, so levels
-- are searched in the same way.
local policy = require "dt.policy"

local CaDDTree = policy.define {
  name   = "caddtree",
  doc    = "the tree of the most expected tokens per time, as the draft model and the measured costs say",
  uses   = { costs = true, calibrate = true },
  params = {
    { "top_k", 8, min = 1, max = 32, tune = { 2, 16 }, doc = "nodes expanded per level, and children of each" },
    { "depth", 12, min = 1, max = 64, tune = { 2, 16 }, doc = "most levels" },
    { "total", 128, min = 1, max = 256, doc = "most nodes verified" },
    { "pause", true, tune = false, doc = "draft little where drafts did not earn their time; off: the paper's rule" },
  },
  presets = { paper = { pause = false } },
}

function CaDDTree:init()
  self.level, self.best = {}, {}
  self.loss_budget, self.experts = policy.loss_budget(self.costs), policy.experts(self.costs)
end

-- The most tokens per millisecond that the tree can bring after `spent` ms of drafting, and its number of nodes.
function CaDDTree:search(tree, spent)
  local context, best = tree.seq:length(), tree:best(self.total, 1, tree:size(), self.best)
  local costs, experts = self.costs, self.experts
  local tokens, most, size = 1, 1 / (spent + costs:target(1, context)), 0
  for n = 1, #best do
    tokens = tokens + tree:p(best[n])
    local ms = costs:target(n + 1, context, nil, experts:expected(n + 1)) -- the root is a row too
    local rate = tokens / (spent + ms)
    if rate < most then break end
    most, size = rate, n
  end
  return most, size
end

function CaDDTree:draft(tree)
  local loss_budget, depth = self.loss_budget, math.min(self.depth, tree:depth_room())
  if loss_budget:pauses() and self.pause then return end
  if not loss_budget:affords(tree.seq:length()) and self.pause then return end
  if loss_budget:owes() and self.pause then depth = math.min(depth, 1) end
  tree:limit(4096)
  local level, n, spent, size = self.level, 1, 0, 0
  local most = self:search(tree, 0)
  level[1] = tree.root
  for _ = 1, depth do
    -- ends if the level would not pay even with right guesses after all of its nodes
    local sum, ms = 0, self.costs:draft(n, tree.seq:length())
    for i = 1, n do sum = sum + tree:p(level[i]) end
    if sum < most * ms then break end
    loss_budget:pass(n, tree:draft_step(level, n))
    spent = spent + ms
    local first = tree:size() + 1
    for i = 1, n do tree:branch(level[i], self.top_k) end
    if tree:size() < first then break end
    local before = most
    most, size = self:search(tree, spent)
    if most < before then break end
    n = #tree:best(self.top_k, first, tree:size(), level)
  end
  tree:keep(size)
end

function CaDDTree:observe(_, out)
  self.loss_budget:close(out.drafted + 1, out.accepted, out.experts_read)
  self.experts:observe(out.drafted + 1, out)
end

return CaDDTree
