-- Keeps a node without its parent.
-- expect: keep: node
local policy = require "dt.policy"

local Bad = policy.define { name = "open_set", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    tree:draft_step(0)
    local u = tree:branch(0, 1)
    tree:draft_step(u)
    local v = tree:branch(u, 1)
    tree:keep { v }
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
