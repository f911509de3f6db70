-- Sometimes nothing, sometimes drafted rows that are never verified, sometimes a short chain.
local policy = require "dt.policy"

local P = policy.define { name = "empty_at_random", doc = "empty trees at random" }

function P.draft(_, tree)
  local dice, node = math.random(), tree.root
  if dice < 0.4 then return end
  for _ = 1, math.random(1, 6) do
    tree:draft_step(node)
    local first, last = tree:branch(node, 2)
    if last < first then break end
    node = math.random(first, last)
  end
  if dice < 0.6 then tree:keep {} end
end

return P
