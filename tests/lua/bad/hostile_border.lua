-- A table whose length is a trick: shifting it up would take for ever.
-- expect: the table is too long
local policy = require "dt.policy"

local Bad = policy.define { name = "hostile_border", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local t = {}
    for i = 1, 150 do t["room" .. i] = true end -- so that the numbers stay out of the array part
    for i = 0, 62 do t[1 << i] = true end
    table.insert(t, 1, true)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
