-- Random trees of random tokens, which the target hardly ever takes; some nodes carry the draft's own candidates, so
-- that paths through the noise are accepted too.
local policy = require "dt.policy"

local P = policy.define {
  name   = "random_trees",
  doc    = "random trees of random tokens",
  params = { { "nodes", 24, min = 1, max = 256, doc = "nodes added per iteration" },
             { "vocab", 4096, min = 2, max = 1000000, doc = "random tokens are below this" } },
}

function P:draft(tree)
  for _ = 1, math.random(0, self.nodes) do
    local u = math.random(0, tree:size())
    if math.random() < 0.5 then
      tree:add(u, math.random(0, self.vocab - 1), -math.random() * 8)
    else
      tree:draft_step(u)
      tree:branch(u, math.random(1, 3))
    end
  end
end

return P
