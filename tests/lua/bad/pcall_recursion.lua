-- Recursion through pcall: the C stack.
-- expect: policy made a table of more than 16384 keys, or a stack of that size
local policy = require "dt.policy"

local Bad = policy.define { name = "pcall_recursion", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local function f() while true do pcall(f) end end
    f()
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
