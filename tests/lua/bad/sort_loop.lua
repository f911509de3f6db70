-- Never returns from a comparator, where no yield is possible.
-- expect: policy ran longer than
local policy = require "dt.policy"

local Bad = policy.define { name = "sort_loop", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local t = { 3, 1, 2 }
    while true do
      pcall(table.sort, t, function() while true do end end)
    end
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
