-- The dynamic draft tree of EAGLE-2 and EAGLE-3 (Li et al. 2024, 2025): expands the likeliest nodes layer by layer, and
-- verifies the best of all drafted nodes. Only the tree's shape is theirs; any draft model can be used.
--
-- Their published depths count expansions after the first layer; `depth` counts layers, so it is one more.
local policy = require "dt.policy"

local Eagle2 = policy.define {
  name    = "eagle2",
  doc     = "the top_k likeliest nodes of each layer get top_k children; the best of all are verified",
  uses    = { calibrate = true },
  params  = {
    { "depth", 6, min = 1, max = 64, doc = "layers" },
    { "top_k", 10, min = 1, max = 32, doc = "nodes expanded in a layer, and children of each" },
    { "total", 60, min = 1, max = 256, doc = "nodes verified" },
  },
  presets = {
    eagle2 = { depth = 6, top_k = 10, total = 60 },
    eagle3 = { depth = 8, top_k = 10, total = 60 },
  },
}

function Eagle2:init() self.frontier = {} end

function Eagle2:draft(tree)
  local frontier, n = self.frontier, 1
  frontier[1] = tree.root
  tree:limit(4096) -- more than one pass can verify; keep chooses from them
  for _ = 1, math.min(self.depth, tree:depth_room()) do
    local first, last = policy.expand(tree, frontier, n, self.top_k)
    n = #tree:best(self.top_k, first, last, frontier)
    if n == 0 then break end
  end
  tree:keep(self.total)
end

return Eagle2
