-- Gigabytes of strings.
-- expect: policy used more than 16 MB of memory
local policy = require "dt.policy"

local Bad = policy.define { name = "huge_strings", params = { { "at", 1, min = 1, doc = "faulty iteration" } } }

function Bad:init() self.iteration = 0 end

function Bad:draft(tree)
  self.iteration = self.iteration + 1
  if self.iteration == self.at then
    local all = {}
    for i = 1, 65536 do all[i] = ("x"):rep(65000) .. i end
  end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 3)
end

return Bad
