-- Commits what was not verified.
-- expect: seq:commit:
local policy = require "dt.policy"

local Bad = policy.define { name = "commits_at_once", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    self.iteration = self.iteration
    tree.seq:commit()
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
