-- Reaches for the tree's metatable.
-- expect: attempt to index a boolean value
local policy = require "dt.policy"

local Bad = policy.define { name = "tree_metatable", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    getmetatable(tree).__index = nil
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
