-- Verifies twice.
-- expect: seq:verify_tree:
local policy = require "dt.policy"

local Bad = policy.define { name = "verifies_twice", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

function Bad:step(seq)
  self.iteration = (self.iteration or 0) + 1
  seq:verify_tree()
  if self.iteration == self.at then seq:verify_tree() end
  seq:commit()
end

return Bad
