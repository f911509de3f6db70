-- Wants to run once more when it is killed.
-- expect: '__close' is not available
local policy = require "dt.policy"

local Bad = policy.define { name = "close_after_kill", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local trap <close> = setmetatable({}, { __close = function() while true do end end })
    while trap do end
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
