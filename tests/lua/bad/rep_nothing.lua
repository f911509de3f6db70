-- Nothing, repeated for ever.
-- expect: done
local policy = require "dt.policy"

local Bad = policy.define { name = "rep_nothing", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    for _ = 1, 10 do string.rep("", 1 << 62) end
    error "done"
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
