-- Throws trees away before and after they were verified, up to the allowed 8 times, then commits another one.
local policy = require "dt.policy"

local P = policy.define { name = "rollbacks", doc = "drops trees, verified or not, before committing one" }

local function grow(tree)
  local node = tree.root
  for _ = 1, math.random(0, 5) do
    tree:draft_step(node)
    local first, last = tree:branch(node, math.random(1, 3))
    if last < first then break end
    node = math.random(first, last)
  end
end

function P.step(_, seq)
  for _ = 1, math.random(0, 8) do
    grow(seq.tree)
    if math.random() < 0.5 then seq:verify_tree() end
    seq:rollback()
  end
  grow(seq.tree)
  seq:verify_tree()
  seq:commit { rebuild = math.random() < 0.3 }
end

return P
