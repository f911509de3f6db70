-- CaDDTree (2026): chooses the structure and size of each tree so that the expected number of tokens per time of
-- drafting and verifying is largest. Verifying the n likeliest nodes is expected to yield 1 + (sum of their p) tokens.
-- If the cost of each further row increases with n, tokens per time first increase with n and then decrease, so the
-- search ends at the first decrease. In the paper one pass gives the guesses of all levels; a draft model needs a pass
-- for each level, so the number of levels is searched in the same way.
local policy = require "dt.policy"

local CaDDTree = policy.define {
  name   = "caddtree",
  doc    = "the tree with the most expected tokens per time, by the draft model and the costs of passes",
  uses   = { costs = true, calibrate = true },
  params = {
    { "top_k", 8, min = 1, max = 32, tune = { 2, 16 }, doc = "nodes expanded per level, and children of each" },
    { "depth", 12, min = 1, max = 64, tune = { 2, 16 }, doc = "maximum number of levels" },
    { "total", 128, min = 1, max = 256, doc = "maximum number of nodes verified" },
    { "pause", true, tune = false, doc = "draft little while drafts do not pay for themselves; off: the paper's rule" },
  },
  presets = { paper = { pause = false } },
}

function CaDDTree:init()
  self.level, self.best = {}, {}
  self.loss_budget, self.experts = policy.loss_budget(self.costs), policy.experts(self.costs)
end

-- Returns the highest number of tokens per ms that the tree can yield after `spent` ms of drafting, and the number of
-- nodes for which it does.
function CaDDTree:search(tree, spent)
  local context, best = tree.seq:length(), tree:best(self.total, 1, tree:size(), self.best)
  local costs, experts = self.costs, self.experts
  local tokens, most, size = 1, 1 / (spent + costs:target(1, context)), 0
  for n = 1, #best do
    tokens = tokens + tree:p(best[n])
    local ms = costs:target(n + 1, context, nil, experts:expected(n + 1)) -- the root is a row, too
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
    -- end if the level would not pay for itself even if a guess after each of its nodes were right
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
