-- Wants to run when it is collected.
-- expect: '__gc' is not available
local policy = require "dt.policy"

local Bad = policy.define { name = "gc", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    setmetatable({}, { __gc = function() while true do end end })
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
