-- A tree of fixed depth D and branching B, pruned by path probability: the tuned baseline of the DynaTree paper.
--
-- Depths count as in the paper, from the first drafted token: d(u) is tree:depth(u) - 1, the root has d = -1. So D = 8
-- puts up to 9 drafted tokens on a path.
local policy = require "dt.policy"

local FixedTree = policy.define {
  name   = "fixed_tree",
  doc    = "every likely enough node gets B children, down to depth D",
  uses   = { calibrate = true },
  params = {
    { "D", 8, min = 1, max = 64, tune = { 1, 10 }, doc = "nodes with d(u) < D are expanded" },
    { "B", 3, min = 1, max = 32, tune = { 1, 4 }, doc = "children of an expanded node" },
    { "tau", 0.1, min = 0, max = 1, doc = "a node with path probability p(u) < tau is not expanded" },
    { "N_max", 256, min = 1, max = 256, tune = false, doc = "maximum number of drafted nodes per iteration" },
    { "root_branch", nil, type = "integer", min = 1, max = 32, tune = false,
      doc = "children of the root (not set: B)" },
    { "rebuild", false, tune = false, doc = "commit by running the accepted tokens through the target again" },
  },
  presets = { as_published = { root_branch = 1, rebuild = true } },
}

function FixedTree:init()
  self.level, self.below = {}, {} -- nodes of a level to expand, and those of the next level
end

function FixedTree:draft(tree)
  local D, B, tau = self.D, self.B, self.tau
  local level, below = self.level, self.below
  tree:limit(self.N_max)
  level[1] = tree.root
  local n, d, branch = 1, -1, self.root_branch or B
  while n > 0 and tree:room() > 0 and tree:depth_room() > 0 do
    n = math.min(n, (tree:room() + B - 1) // B) -- beyond the budget, nodes of this level stay leaves
    tree:draft_step(level, n)
    d = d + 1
    local m = 0
    for i = 1, n do
      local first, last = tree:branch(level[i], branch)
      if d < D then
        for v = first, last do
          if tree:p(v) >= tau then
            m = m + 1
            below[m] = v
          end
        end
      end
    end
    level, below, n, branch = below, level, m, B
  end
end

return FixedTree
