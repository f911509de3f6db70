-- Sorts long equal strings without a comparator.
-- expect: policy ran longer than
local policy = require "dt.policy"

local Bad = policy.define { name = "sort_strings", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local t, s = {}, ("x"):rep(1 << 16)
    for i = 1, 400000 do t[i] = s end
    table.sort(t)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
