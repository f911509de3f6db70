-- Indexes nil.
-- expect: attempt to index a nil value (local 'nothing')
local policy = require "dt.policy"

local Bad = policy.define { name = "runtime_error", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local nothing
    print(nothing.field)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
