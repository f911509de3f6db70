-- DDTree (arXiv 2604.12989, 2026): of all trees with `total` nodes, the one with the largest sum of probabilities, for
-- a draft that guesses several tokens in one pass, as block heads do (models/HEADS.md). A node's probability is that of
-- its parent times its own, so the likeliest nodes form a tree: each step adds the likeliest token that continues some
-- node and is not in the tree yet. These are kept in a heap, one for each node: the next best of its list.
--
-- With other drafts each node costs a draft pass, and eagle2 or rate are better.
local policy = require "dt.policy"

local DDTree = policy.define {
  name   = "ddtree",
  doc    = "the likeliest nodes of all, for heads that guess several tokens in one pass",
  uses   = { calibrate = true },
  params = {
    { "total", 32, min = 1, max = 256, doc = "nodes of a tree" },
    { "width", 0, min = 0, max = 15, doc = "tokens that a block head guesses; 0: its whole block" },
  },
}

function DDTree:init()
  self.p, self.parent, self.rank, self.one, self.how = {}, {}, {}, {}, { width = self.width }
end

function DDTree:swap(i, j)
  local p, parent, rank = self.p, self.parent, self.rank
  p[i], p[j], parent[i], parent[j], rank[i], rank[j] = p[j], p[i], parent[j], parent[i], rank[j], rank[i]
end

-- Adds the candidate of this rank of node u, if there is one, to the heap.
function DDTree:push(tree, u, rank)
  local token, logp = tree:candidate(u, rank)
  if not token then return end
  local p, i = self.p, self.n + 1
  p[i], self.parent[i], self.rank[i], self.n = tree:cumlogp(u) + logp, u, rank, i
  while i > 1 and p[i] > p[i // 2] do
    self:swap(i, i // 2)
    i = i // 2
  end
end

-- Removes the likeliest candidate, and returns its node and its rank.
function DDTree:pop()
  local p, u, rank, i = self.p, self.parent[1], self.rank[1], 1
  self:swap(1, self.n)
  self.n = self.n - 1
  while 2 * i <= self.n do
    local child = 2 * i
    if child < self.n and p[child + 1] > p[child] then child = child + 1 end
    if p[i] >= p[child] then break end
    self:swap(i, child)
    i = child
  end
  return u, rank
end

-- Asks the draft what follows node u.
function DDTree:open(tree, u)
  self.one[1] = u
  tree:draft_step(self.one, 1, self.how)
  self:push(tree, u, 1)
end

function DDTree:draft(tree)
  local deepest = tree:depth_room()
  if deepest == 0 then return end
  self.n = 0
  self:open(tree, tree.root)
  for _ = 1, math.min(self.total, tree:room()) do
    if self.n == 0 then break end
    local u, rank = self:pop()
    local v = tree:add(u, tree:candidate(u, rank))
    self:push(tree, u, rank + 1)
    if tree:depth(v) < deepest then self:open(tree, v) end
  end
end

return DDTree
