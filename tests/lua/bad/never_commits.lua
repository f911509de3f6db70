-- A step that returns without a commit.
-- expect: step returned without a call of commit
local policy = require "dt.policy"

local Bad = policy.define { name = "never_commits", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

function Bad:step(seq)
  self:draft(seq.tree)
  seq:verify_tree()
  if self.iteration < self.at then seq:commit() end
end

return Bad
