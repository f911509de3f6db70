-- Loads code of its own.
-- expect: undefined variable 'load'
local policy = require "dt.policy"

local Bad = policy.define { name = "loads_code", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    load("\27Lua")()
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
