-- OPT-Tree (Wang et al. 2025): grows layer by layer, as long as another layer increases the expected number of tokens
-- from the n best nodes, which is the sum of their path probabilities.
local policy = require "dt.policy"

local OptTree = policy.define {
  name   = "opt_tree",
  doc    = "layers of the n likeliest nodes, as long as they improve the n best nodes of the tree",
  uses   = { calibrate = true },
  params = {
    { "n", 16, min = 1, max = 85, doc = "nodes of a layer" },
    { "threshold", 0.7, min = 0, max = 85, tune = { 0.05, 2 },
      doc = "drafting ends with the first layer that increases the sum by at most this" },
    { "max_depth", 10, min = 1, max = 64, doc = "maximum number of layers" },
  },
}

function OptTree:init()
  self.layer, self.ranked = {}, {}
end

-- The sum of the path probabilities of the n best nodes.
function OptTree:weight(tree)
  local sum, ranked = 0.0, tree:best(self.n, 1, tree:size(), self.ranked)
  for i = 1, #ranked do sum = sum + tree:p(ranked[i]) end
  return sum
end

function OptTree:draft(tree)
  local layer, n, weight = self.layer, 1, 0.0
  layer[1] = tree.root
  tree:limit(4096) -- more than one pass can verify; keep chooses from them
  for _ = 1, math.min(self.max_depth, tree:depth_room()) do
    tree:draft_step(layer, n)
    local first, last = tree:branch_best(layer, self.n, n)
    n = 0
    for v = first, last do
      n = n + 1
      layer[n] = v
    end
    local before = weight
    weight = self:weight(tree)
    if weight - before <= self.threshold then break end
  end
  tree:keep(3 * self.n)
end

return OptTree
