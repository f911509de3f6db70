-- Token Recycling (Luo et al. 2025) needs no draft model. For each token, a matrix keeps the `k` tokens that the target
-- last found likeliest after it; rows of rejected guesses are used, too. The tree follows the matrix from the last
-- token on, in a fixed shape that has more nodes for likely ranks. The shape is policy.shape's, since the paper does
-- not print its own.
local policy = require "dt.policy"

local Recycling = policy.define {
  name   = "token_recycling",
  doc    = "what the target last found likely after each token, in a fixed tree; needs no draft model",
  uses   = { draft = false, target = 8 },
  params = {
    { "k", 8, min = 1, max = 8, doc = "tokens kept for each token" },
    { "total", 80, min = 1, max = 256, tune = { 8, 128 }, doc = "nodes of the tree" },
    { "depth", 6, min = 1, max = 32, doc = "levels of the tree" },
    { "accepts", { 0.5, 0.15, 0.08, 0.06, 0.05, 0.04, 0.03, 0.03 }, min = 0, max = 1,
      doc = "how often the token of each rank is expected to be right; determines the shape" },
  },
}

function Recycling:init()
  self.next = {} -- token -> the k tokens after it
  self.node = { [0] = 0 } -- nodes of the tree by the shape's nodes
  local accepts = {}
  for i = 1, math.min(self.k, #self.accepts) do accepts[i] = self.accepts[i] end
  self.shape = policy.shape(accepts, self.total, self.depth)
end

function Recycling:draft(tree)
  local node, child = self.node, 0
  for v = 0, #self.shape do
    local u = node[v]
    local list = u and self.next[tree:token(u)]
    for rank = 1, self.shape[v] do
      child = child + 1
      node[child] = list and list[rank] and tree:add(u, list[rank])
    end
  end
end

function Recycling:observe(tree, out)
  for u = 0, tree:size() do
    local token = tree:token(u)
    local list = self.next[token] or {}
    self.next[token] = list
    for i = 1, self.k do list[i] = (out:candidates(u, i)) end
  end
end

return Recycling
