-- A huge repetition.
-- expect: string.rep: the result is longer than 65536 bytes
local policy = require "dt.policy"

local Bad = policy.define { name = "rep_bomb", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    ("x"):rep(1 << 40)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
