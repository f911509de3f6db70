-- A string that doubles.
-- expect: policy made a string of more than 64 KiB
local policy = require "dt.policy"

local Bad = policy.define { name = "doubling_string", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local s = "x"
    while true do s = s .. s end
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
