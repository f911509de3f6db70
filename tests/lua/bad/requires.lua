-- Requires what is not for policies.
-- expect: require: expected "dt.policy", or "NAME" for the file NAME.lua next to the policy file
local policy = require "dt.policy"

local Bad = policy.define { name = "requires", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    require "dt.core"
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
