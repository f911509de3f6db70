-- Sequoia (Chen et al. 2024): the fixed tree of `total` nodes and at most `depth` levels that has the most expected
-- accepted tokens if the draft model's i-th guess is right with probability accepts[i] everywhere. The paper's dynamic
-- program finds the nodes with the largest products. `measured`: the probabilities are measured in this text.
local policy = require "dt.policy"

local Sequoia = policy.define {
  name   = "sequoia",
  doc    = "the tree of fixed shape that is best for the acceptance rates of the guesses' ranks",
  uses   = { calibrate = true },
  params = {
    { "total", 24, min = 1, max = 256, tune = { 4, 64 }, doc = "nodes of the tree" },
    { "depth", 6, min = 1, max = 64, tune = { 2, 12 }, doc = "levels of the tree, each a draft pass" },
    { "accepts", { 0.6, 0.15, 0.07, 0.04, 0.03, 0.02, 0.015, 0.01 }, min = 0, max = 1,
      doc = "how often the guess of each rank is right" },
    { "measured", true, doc = "learn accepts from the text; off: as given" },
    { "every", 16, min = 1, max = 1000, doc = "iterations between changes of the shape" },
  },
}

local PRIOR = 20 -- the given probabilities count as this many guesses

function Sequoia:init()
  self.right, self.tried, self.n = {}, {}, 0
  for i, p in ipairs(self.accepts) do self.right[i], self.tried[i] = p * PRIOR, PRIOR end
  self.node, self.level = { [0] = 0 }, {}
  self.shape = policy.shape(self.accepts, self.total, self.depth)
end

function Sequoia:draft(tree)
  local shape, node, level, first, last, child = self.shape, self.node, self.level, 0, 0, 0
  while first <= last and tree:depth_room() > 0 do -- nodes first..last of the shape are a level
    local n = 0
    for v = first, last do
      if node[v] and shape[v] > 0 then
        n = n + 1
        level[n] = node[v]
      end
    end
    if n == 0 then return end
    tree:draft_step(level, n)
    for v = first, last do
      local a, b = 1, 0
      if node[v] and shape[v] > 0 then a, b = tree:branch(node[v], shape[v]) end
      for i = 0, shape[v] - 1 do
        child = child + 1
        node[child] = a + i <= b and a + i
      end
    end
    first, last = last + 1, child
  end
end

function Sequoia:observe(tree)
  if not self.measured then return end
  local parent, rank = nil, 0
  for v = 1, tree:size() do
    rank = tree:parent(v) == parent and rank + 1 or 1
    parent = tree:parent(v)
    local accepted = tree:accepted(v)
    if accepted ~= nil and self.tried[rank] then
      self.tried[rank] = self.tried[rank] + 1
      if accepted then self.right[rank] = self.right[rank] + 1 end
    end
  end
  self.n = self.n + 1
  if self.n % self.every > 0 then return end
  local p = {}
  for i = 1, #self.tried do p[i] = math.min(self.right[i] / self.tried[i], p[i - 1] or 1) end
  self.shape = policy.shape(p, self.total, self.depth)
end

return Sequoia
