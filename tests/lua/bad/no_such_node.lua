-- Names a node that does not exist.
-- expect: tree:branch: u: there is no node 99
local policy = require "dt.policy"

local Bad = policy.define { name = "no_such_node", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    tree:branch(99, 1)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
