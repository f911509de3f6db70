-- An error object whose text never comes.
-- expect: error object is a table value
local policy = require "dt.policy"

local Bad = policy.define { name = "tostring_bomb", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    error(setmetatable({}, { __tostring = function() while true do end end, __name = 1 }))
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
