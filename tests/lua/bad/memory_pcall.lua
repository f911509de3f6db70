-- Catches running out of memory and tries again.
-- expect: policy used more than 16 MB of memory
local policy = require "dt.policy"

local Bad = policy.define { name = "memory_pcall", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local kept
    while true do
      pcall(function()
        local t = {}
        for i = 1, 1 << 30 do t[i] = i end
      end)
      kept = nil
    end
    return kept
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
