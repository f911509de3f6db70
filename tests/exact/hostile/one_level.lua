-- One level of 256 nodes: the draft's 32 candidates and 224 random tokens.
local policy = require "dt.policy"

local P = policy.define {
  name   = "one_level",
  doc    = "256 children of the root",
  params = { { "vocab", 4096, min = 512, max = 1000000, doc = "random tokens are below this" } },
}

function P:draft(tree)
  if tree:depth_room() == 0 then return end
  tree:draft_step(tree.root)
  tree:branch(tree.root, 32)
  while tree:room() > 0 do tree:add(tree.root, math.random(0, self.vocab - 1)) end
end

return P
