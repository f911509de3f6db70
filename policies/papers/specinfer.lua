-- SpecInfer (Miao et al. 2024): a tree of fixed shape. Every node of level i - 1 gets widths[i] children:
-- 1,1,3,1,1,1,1,1 is a chain of two nodes that continues as three chains.
local policy = require "dt.policy"

local SpecInfer = policy.define {
  name   = "specinfer",
  doc    = "a tree of fixed shape, given by the number of children of a node at each level",
  uses   = { calibrate = true },
  params = { { "widths", { 1, 1, 3, 1, 1, 1, 1, 1 }, min = 1, max = 32, doc = "children of a node, level by level" } },
}

function SpecInfer:init() self.level = {} end

function SpecInfer:draft(tree)
  local level, n = self.level, 1
  level[1] = tree.root
  for i = 1, math.min(#self.widths, tree:depth_room()) do
    local width = self.widths[i]
    n = math.min(n, (tree:room() + width - 1) // width) -- beyond the room, nodes of this level stay leaves
    local first, last = policy.expand(tree, level, n, width)
    n = 0
    for v = first, last do
      n = n + 1
      level[n] = v
    end
  end
end

return SpecInfer
