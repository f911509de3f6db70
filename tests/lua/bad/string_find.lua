-- A pattern that takes exponential time.
-- expect: string.find does not exist for policies; string has: byte, char
local policy = require "dt.policy"

local Bad = policy.define { name = "string_find", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    (("a"):rep(100)):find(("a*"):rep(50) .. "b")
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
