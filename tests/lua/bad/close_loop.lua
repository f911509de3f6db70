-- Would loop in a to-be-closed variable's handler while an error unwinds, with the metamethod set when nobody looks.
-- expect: variable 'trap' got a non-closable value
local policy = require "dt.policy"

local Bad = policy.define { name = "close_loop", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local meta = {}
    local closed = setmetatable({}, meta)
    meta.__close = function() while true do end end
    local trap <close> = closed
    error("unwind" .. tostring(trap))
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
