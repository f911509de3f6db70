-- A table that claims to be endless.
-- expect: the table has a metatable
local policy = require "dt.policy"

local Bad = policy.define { name = "hostile_metatable", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local t = setmetatable({}, { __len = function() return 1 << 60 end, __newindex = function() end })
    table.insert(t, 1, 0)
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
