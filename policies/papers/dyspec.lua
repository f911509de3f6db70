-- DySpec (Xiong et al. 2024): the tree grows best first. Each draft pass expands the likeliest leaves of the tree, at
-- any depth, until the budget is used. Depth and breadth depend on the probabilities alone.
--
-- The paper expands one leaf at a time and samples; here a pass expands m leaves, each into its B likeliest children.
local policy = require "dt.policy"

local DySpec = policy.define {
  name   = "dyspec",
  doc    = "best first: each pass expands the likeliest leaves of the whole tree",
  uses   = { calibrate = true },
  params = {
    { "budget", 64, min = 1, max = 256, doc = "nodes drafted" },
    { "m", 4, min = 1, max = 64, doc = "leaves expanded per pass" },
    { "B", 4, min = 1, max = 32, doc = "children of an expanded leaf" },
  },
}

function DySpec:init()
  self.ranked, self.leaves = {}, {}
end

-- Fills self.leaves with the m likeliest nodes that can be expanded, and returns their number. inner: the number of
-- nodes that cannot be expanded, at most all of which are likelier than the m-th leaf.
function DySpec:best_leaves(tree, m, closed, inner)
  local ranked, leaves, n = tree:best(inner + m, 1, tree:size(), self.ranked), self.leaves, 0
  for i = 1, #ranked do
    local v = ranked[i]
    if not closed[v] then
      n = n + 1
      leaves[n] = v
      if n == m then break end
    end
  end
  return n
end

function DySpec:draft(tree)
  local deepest = tree:depth_room()
  if deepest == 0 then return end
  local leaves, n, closed, inner = self.leaves, 1, {}, 0
  tree:limit(self.budget)
  leaves[1] = tree.root
  while n > 0 do
    local first, last = policy.expand(tree, leaves, n, self.B)
    if tree:room() == 0 then break end
    for i = 1, n do closed[leaves[i]] = true end
    inner = inner + n
    for v = first, last do
      if tree:depth(v) == deepest then
        closed[v] = true
        inner = inner + 1
      end
    end
    local wanted = (tree:room() + self.B - 1) // self.B -- beyond the budget, nodes stay leaves
    n = self:best_leaves(tree, math.min(self.m, wanted), closed, inner)
  end
end

return DySpec
