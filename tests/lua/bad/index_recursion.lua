-- A chain of __index functions that never ends.
-- expect: stack overflow
local policy = require "dt.policy"

local Bad = policy.define { name = "index_recursion", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local t = {}
    setmetatable(t, { __index = function(self, k) return self[k + 1] end })
    print(t[1])
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
