-- rate: no thresholds to tune. It maximizes tokens per millisecond by Dinkelbach's rule for fractional programs (1967):
-- with R the rate reached so far, a thing is worth doing iff the tokens it is expected to add are at least R times the
-- time it costs. Times come from the calibrated tables (T: a target pass, D: a draft pass), so that runs repeat.
--
-- alpha(v), the estimated probability that v will be accepted, is that of its parent times f(q), q being v's
-- probability under the draft model and f(q) what became of such guesses in this text so far.
local policy = require "dt.policy"
local exp, floor, min = math.exp, math.floor, math.min

local Rate = policy.define {
  name = "rate",
  doc  = "drafts what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true },
}

local BINS, WIDEST = 19, 6 -- bins of -4 log q; children per node
local MOST, AHEAD = 64, 3  -- nodes of a tree; rows that the price of one more is averaged over: times are uneven
local HOPE = 1.5           -- a greedy target takes its likeliest token: guesses come true more often than q, at first

function Rate:init(seq)
  self.accepted, self.expected, self.factor = {}, {}, {} -- [bin]
  for b = 0, BINS do self.accepted[b], self.expected[b], self.factor[b] = HOPE, 1, HOPE end
  self.T, self.D = {}, {}
  self.alpha, self.q, self.parent = { [0] = 1 }, {}, {} -- [node]
  self.level, self.next, self.rank, self.token, self.logp = {}, {}, {}, {}, {}
  self:price(seq)
  self.tokens, self.ms = 1, self.T[1]
  self.growth = 0.8 -- tokens that a level is expected to add, per token of the level before
end

-- Costs at the context of now, which change every 128 tokens.
function Rate:price(seq)
  local context = seq:length()
  self.until_length = (context + 127) // 128 * 128
  for n = 1, MOST + 1 + AHEAD do
    self.T[n], self.D[n] = self.costs:target(n, context), self.costs:draft(n, context)
  end
end

function Rate:draft(tree)
  if tree.seq:length() > self.until_length then self:price(tree.seq) end
  local T, D, R, alpha, factor = self.T, self.D, self.tokens / self.ms, self.alpha, self.factor
  local level, next, rank, token, logp = self.level, self.next, self.rank, self.token, self.logp
  local n, width, sum, ms = 0, 1, 1, 0
  level[1] = tree.root
  while width > 0 and tree:depth_room() > 0 and n < MOST do
    local price = R * (T[n + 1 + AHEAD] - T[n + 1]) / AHEAD
    if self.growth * sum - price * width < R * D[width] then break end
    tree:draft_step(level, width)
    ms = ms + D[width]
    for i = 1, width do
      rank[i] = 1
      token[i], logp[i] = tree:candidate(level[i], 1)
    end
    local deeper, kept = 0, 0
    while n < MOST do -- the best child that is left, of all nodes of the level
      local best, most = nil, R * (T[n + 1 + AHEAD] - T[n + 1]) / AHEAD
      for i = 1, width do
        if token[i] then
          local a = alpha[level[i]] * min(1, exp(logp[i]) * factor[min(BINS, floor(-4 * logp[i]))])
          if a >= most then best, most = i, a end
        end
      end
      if not best then break end
      local u = level[best]
      local v = tree:add(u, token[best], logp[best])
      n = v
      alpha[v], self.q[v], self.parent[v] = most, logp[best], u
      kept = kept + most
      if most >= R * D[1] then
        deeper = deeper + 1
        next[deeper] = v
      end
      rank[best] = rank[best] + 1
      token[best] = nil
      if rank[best] <= WIDEST then token[best], logp[best] = tree:candidate(u, rank[best]) end
    end
    self.growth = self.growth + 0.05 * (kept / sum - self.growth)
    level, next, width, sum = next, level, deeper, 0
    for i = 1, width do sum = sum + alpha[level[i]] end
  end
  self.level, self.next = level, next
  self.spent = ms + T[n + 1]
end

function Rate:observe(_, out)
  self.tokens = 0.98 * self.tokens + out.committed
  self.ms = 0.98 * self.ms + self.spent
  local taken, path = self.rank, out.path
  for v = 0, out.drafted do taken[v] = false end
  taken[0] = true
  for i = 1, out.accepted do taken[path[i]] = true end
  for v = 1, out.drafted do
    if taken[self.parent[v]] then
      local q = self.q[v]
      local b = min(BINS, floor(-4 * q))
      self.expected[b] = self.expected[b] + exp(q)
      if taken[v] then self.accepted[b] = self.accepted[b] + 1 end
      self.factor[b] = policy.clip(self.accepted[b] / self.expected[b], 0.3, 3)
    end
  end
end

return Rate
