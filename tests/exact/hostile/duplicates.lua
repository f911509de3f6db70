-- Adds the same children again and again: `add` must return the existing child, `branch` must return others, and
-- drafting from a node twice must change nothing.
local policy = require "dt.policy"

local P = policy.define { name = "duplicates", doc = "adds and drafts everything twice" }

function P.draft(_, tree)
  local node = tree.root
  for _ = 1, math.random(1, 5) do
    tree:draft_step { node, node, node }
    local token, logp = tree:candidate(node, 1)
    if not token then return end
    local child = tree:add(node, token, logp)
    if not child then return end
    assert(tree:add(node, token, -9.0) == child, "add gave a second child with the same token")
    local first, last = tree:branch(node, 2)
    tree:draft_step(node)
    tree:branch(node, 1)
    for v = first, last do assert(tree:token(v) ~= token, "branch repeated a child") end
    node = child
  end
end

return P
