-- TALON (Liu et al. 2026): a budget of nodes, spent layer by layer. The first layer has top_k nodes; each later layer
-- has all candidates that are at least `mu` times as likely as the likeliest one. The tree is therefore deep and narrow
-- if the draft model is certain, and shallow and wide if it is not. This is our interpretation of the paper; the value
-- of mu is not from it.
local policy = require "dt.policy"

local Talon = policy.define {
  name   = "talon",
  doc    = "a budget of nodes, spent layer by layer on candidates nearly as likely as the likeliest one",
  uses   = { calibrate = true },
  params = {
    { "total", 32, min = 1, max = 256, tune = { 4, 64 }, doc = "nodes of the tree" },
    { "top_k", 6, min = 1, max = 32, tune = { 1, 10 }, doc = "nodes of the first layer" },
    { "mu", 0.1, min = 0, max = 1, doc = "minimum probability of a node / that of the likeliest in its layer" },
    { "depth", 12, min = 1, max = 64, tune = { 2, 16 }, doc = "maximum number of layers" },
  },
}

function Talon:init() self.layer = {} end

-- The number of candidates after layer[1..n] that are likely enough.
local function passing(tree, layer, n, mu)
  local most, count = 0, 0
  for i = 1, n do
    local p = tree:confidence(layer[i]) * tree:p(layer[i])
    if p > most then most = p end
  end
  for i = 1, n do
    local p, rank = tree:p(layer[i]), 1
    local token, logp = tree:candidate(layer[i], rank)
    while token and p * math.exp(logp) >= mu * most do
      count, rank = count + 1, rank + 1
      token, logp = tree:candidate(layer[i], rank)
    end
  end
  return count
end

function Talon:draft(tree)
  tree:limit(self.total)
  local layer, n = self.layer, 1
  layer[1] = tree.root
  for depth = 1, math.min(self.depth, tree:depth_room()) do
    if tree:room() == 0 then return end
    tree:draft_step(layer, n)
    local first, last = tree:branch_best(layer, depth == 1 and self.top_k or passing(tree, layer, n, self.mu), n)
    n = 0
    for v = first, last do
      n = n + 1
      layer[n] = v
    end
    if n == 0 then return end
  end
end

return Talon
