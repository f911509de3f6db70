-- Never returns from __lt.
-- expect: policy ran longer than
local policy = require "dt.policy"

local Bad = policy.define { name = "lt_loop", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local a = setmetatable({}, { __lt = function() while true do end end })
    print(pcall(function() return a < a end))
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
