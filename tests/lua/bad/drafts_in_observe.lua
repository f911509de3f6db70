-- Drafts when the iteration is over.
-- expect: tree:draft_step: the iteration is committed
local policy = require "dt.policy"

local Bad = policy.define { name = "drafts_in_observe", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

function Bad:observe(tree, out)
  if self.iteration == self.at then
    tree:draft_step(out.drafted * 0)
  end
end

return Bad
