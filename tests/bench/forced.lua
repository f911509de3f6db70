-- A policy that guesses only text that a grammar forces, and tokens that followed the same token before: what rate's
-- source of such guesses is worth alone.
local policy = require "dt.policy"

local Forced = policy.define { name = "forced", doc = "guesses forced text only", uses = { draft = false } }

local LEAST = 0.2 -- of the probability that a guess and all before it are right: rows are cheap compared with passes

function Forced:init(seq) self.sources = policy.sources { policy.forced(seq) } end

function Forced:draft(tree)
  local sources, node, p = self.sources, tree.root, 1
  sources:find(tree.seq)
  repeat
    local _, q = sources:next(tree)
    p = p * (q or 0)
    node = p > LEAST and tree:depth_room() > 0 and tree:room() > 0 and sources:add(tree, node)
  until not node
end

function Forced:observe(tree, out) self.sources:observe(tree, out) end

return Forced
