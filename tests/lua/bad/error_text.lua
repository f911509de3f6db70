-- A message full of control characters, without an end.
-- expect: [31mred
local policy = require "dt.policy"

local Bad = policy.define { name = "error_text", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    error("\27[31mred\n\r\0" .. ("long"):rep(1000))
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
