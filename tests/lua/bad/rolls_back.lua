-- Rolls back for ever.
-- expect: seq:rollback: at most 8 rollbacks in one step
local policy = require "dt.policy"

local Bad = policy.define { name = "rolls_back", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

function Bad:step(seq)
  self:draft(seq.tree)
  while self.iteration == self.at do seq:rollback() end
  seq:verify_tree()
  seq:commit()
end

return Bad
