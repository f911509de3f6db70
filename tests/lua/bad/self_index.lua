-- Hides a loop in its own methods.
-- expect: policy ran longer than
local policy = require "dt.policy"

local Bad = policy.define { name = "self_index", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    setmetatable(self, { __index = function() while true do end end })
    self.at = 0
    return
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
