-- ECHO (2026): the trees of a batch share one budget. After a few levels, the gates, each tree is assessed. If even its
-- likeliest path is unlikely, it does not grow deeper, and other trees use its share of the budget. If its likeliest
-- path is very likely, one node per level is enough. In the end the likeliest nodes of all trees are verified, as many
-- as the budget allows. The gates and their values are not from the paper.
local policy = require "dt.policy"

local Echo = policy.define {
  name   = "echo",
  doc    = "one budget of nodes for all sequences of a batch, shared according to the draft's confidence",
  scope  = "batch",
  uses   = { calibrate = true },
  params = {
    { "budget", 16, min = 1, max = 256, tune = { 4, 48 }, doc = "nodes verified for each sequence, on average" },
    { "depth", 8, min = 1, max = 64, tune = { 2, 12 }, doc = "levels" },
    { "width", 4, min = 1, max = 32, tune = { 1, 8 }, doc = "nodes expanded per level and children of each, at first" },
    { "gates", { 1, 3, 5 }, min = 1, max = 64, doc = "levels after which trees are assessed" },
    { "stop", 0.1, min = 0, max = 1, doc = "a tree stops if its likeliest path is less probable than this" },
    { "sure", 0.8, min = 0, max = 1, doc = "from this probability of the likeliest path on, one node per level" },
  },
}

function Echo:init()
  self.is_gate = {}
  for _, depth in ipairs(self.gates) do self.is_gate[depth] = true end
end

-- At a gate: decides which trees stop, which are narrow, and how many nodes per level the others have from now on.
function Echo:weigh(batch)
  local level, width_of, free, wide = self.level, self.width_of, 0, 0
  for b = 1, #batch do
    local p = level[b] and level[b][1] and batch[b]:p(level[b][1])
    if not p or p < self.stop then level[b] = nil end -- no p: the draft has no candidates
    if level[b] and p < self.sure then
      width_of[b], wide = nil, wide + 1
    else
      width_of[b] = level[b] and 1 or 0
      free = free + self.width - width_of[b]
    end
  end
  for b = 1, #batch do width_of[b] = width_of[b] or math.min(32, self.width + free // wide) end
end

-- Keeps the likeliest nodes of all trees together; among equal nodes those of the earlier sequence, and in a tree the
-- older ones.
local function keep(batch, budget)
  local lists, at, n = {}, {}, 0
  for b = 1, #batch do
    lists[b], at[b] = batch[b]:best(256), 0
  end
  while n < budget do
    local best, most = nil, -1
    for b = 1, #batch do
      local node = lists[b][at[b] + 1]
      if node and batch[b]:p(node) > most then best, most = b, batch[b]:p(node) end
    end
    if not best then break end
    at[best], n = at[best] + 1, n + 1
  end
  for b = 1, #batch do batch[b]:keep(at[b]) end
end

function Echo:draft(batch)
  local level, width_of = {}, {} -- by sequence: nodes to expand; nodes expanded per level, and children
  self.level, self.width_of = level, width_of
  for b = 1, #batch do
    level[b], width_of[b] = { 0 }, self.width
    batch[b]:limit(4096)
  end
  for depth = 1, self.depth do
    for b = 1, #batch do
      if level[b] and (#level[b] == 0 or batch[b]:depth_room() == 0) then level[b] = nil end
    end
    if not next(level) then break end
    batch:draft_step(level)
    for b = 1, #batch do
      local list, tree = level[b], batch[b]
      if list then
        local first = tree:size() + 1
        for i = 1, #list do tree:branch(list[i], width_of[b]) end
        tree:best(width_of[b], first, tree:size(), list)
      end
    end
    if self.is_gate[depth] then self:weigh(batch) end
  end
  keep(batch, self.budget * #batch)
end

return Echo
