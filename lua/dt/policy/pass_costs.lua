-- policy.pass_costs(costs, seq): the cost of passes in milliseconds, at the current length of the text. It reads each
-- cost from self.costs once, adds the policy overhead, and decides which nodes are worth their rows.
--
-- Policy overhead is the time of the policy's own Lua code. It consists mostly of cache misses, since the passes evict
-- the policy's memory from the processor's caches, so it is estimated as a multiple of the cost of a cache miss
-- (costs:cache_miss). If s sequences run at once, the time of each is the time of all: a pass that k of them share
-- costs each one s / k of its time, and what one sequence computes alone costs s times its time.
--
-- Fields, in ms unless noted:
--   p.verify[n]     a target pass over n rows, the root's included, with policy overhead
--   p.plain         an iteration of plain decoding: p.verify[1] without policy overhead
--   p.row[n]        one more row after n nodes: the lowest average of the next one to four rows
--   p.node          policy overhead of one node of the tree
--   p.overhead, p.resume, p.saved   policy overhead: of an iteration; in addition, of the first one after a pause; of
--                   an iteration of plain decoding, which the host saves while drafting pauses
--   p.sequences     (a number) s
--   p.drafting[k]   of the draft model, shared by k sequences: { first = its first pass of an iteration, over the
--                   root; draft = list: a later pass over n nodes }; without a draft model, first is infinite. A block
--                   head has { block = how many tokens its pass guesses at most, pass = list: its pass for n tokens,
--                   draft = list: taking the guesses of one more level, first = the cost of a whole block }
--
-- Methods:
--   p:follow(seq) -> factor   as an iteration begins: reads the costs again if they may have changed. factor: cost of a
--                   target pass now, divided by what it was before, if learned costs changed; otherwise 1
--   p:observe(out) -> ms   as an iteration ends: how much longer than verify[n] its target pass took because of the
--                   experts that it read; 0 for a target without experts
--   p:reading(n) -> ms   the time in which the draft model processes n tokens of one sequence
--   p:worth(R, alpha, n, loss_budget) -> boolean   whether a node, after n others, is worth its row:
--                   alpha >= R * row[n]. R: tokens per ms; alpha: the probability that the node is accepted. The
--                   loss budget must also cover a pass with that many rows
--   p:choose(tree, n, alpha, R, loss_budget, left, best) -> k, ms   which of the nodes 1..n are verified: of the
--                   likeliest, best[1..k], as many as maximize (sum of alpha) - R * (ms of their rows). `left`: ms
--                   of the loss budget that are left, of which it allows the rows a part. ms: cost of the k rows and
--                   of growing the nodes that are not verified
local experts = require "dt.policy.experts"
local ceil, huge, max, min, setmetatable = math.ceil, math.huge, math.max, math.min, setmetatable

-- Policy overhead for each sequence, as multiples of the cost of a cache miss m(n) = costs:cache_miss(n): LOOK for an
-- iteration of rate, STEP for a draft pass, PLAIN for an iteration of plain decoding (all of m(1)); RESUME for the
-- first iteration after a pause (of m(2)); NODE for a node (of m(0): the policy's memory is in the cache by then). They
-- are fitted to these microseconds, measured on a Zen 3:
--   target pass    iteration of rate    after a pause    plain    node      m(1)        m(2)        m(0)
--   0.2 ms             20 to 40           60 to 77        4.4       9     10 to 20    45 to 70    1.4 to 2.5
--     7 ms               116                138            32      10        70          74           4
-- On a Zen 5 an iteration of rate takes 7 us, 22 after a pause, and 55 with target passes of 4.5 ms.
local LOOK, STEP, PLAIN, RESUME, NODE = 2, 0.85, 0.25, 1.25, 4
-- A row is charged the average of up to AHEAD rows: kernels compute several rows together, so that the first row of
-- such a group is expensive and the others are cheap.
local AHEAD = 4
local SAME = 128 -- costs change with the context every SAME tokens, as self.costs does

local PassCosts = {}
PassCosts.__index = PassCosts

-- A list of f(1), f(2), ...; each is computed when it is first needed, because asking self.costs takes time.
local function asked(f)
  return setmetatable({}, { __index = function(t, n)
    local x = f(n)
    t[n] = x
    return x
  end })
end

-- A number that changes whenever costs change.
function PassCosts:now() return self.costs:revision() + self.experts.revision end

-- Reads all costs at the current length of the text.
function PassCosts:ask(seq)
  local costs, context, sequences = self.costs, seq:length(), self.costs:sequences()
  local of = self.experts
  self.sequences = sequences
  self.revision, self.until_length = self:now(), ceil(context / SAME) * SAME
  local miss = costs:cache_miss(1) * sequences
  local overhead, step, node = LOOK * miss, STEP * miss, NODE * costs:cache_miss(0) * sequences
  self.overhead, self.node, self.saved = overhead, node, PLAIN * miss
  self.resume = max(RESUME * costs:cache_miss(2) * sequences - overhead, 0)
  local verify = asked(function(n)
    return costs:target(n, context, sequences, of:expected(n, sequences)) + overhead + (n - 1) * node
  end)
  self.verify, self.plain = verify, verify[1] - overhead
  self.row = asked(function(n)
    local least = huge
    for rows = 1, AHEAD do least = min(least, (verify[n + 1 + rows] - verify[n + 1]) / rows) end
    return least
  end)
  self.drafting = asked(function() return { first = huge } end)
  if not seq.drafts then return end
  local level, block = asked(function() return step end), costs:block() -- raises if a table has no costs of a draft
  self.drafting = asked(function(k)
    local share, first = sequences / k, block > 0 and 1 or 0 -- the first row of a block guesses nothing
    local passes = asked(function(n) return costs:draft(n + first, context, k) * share + step end)
    if block > 0 then return { block = block, pass = passes, draft = level, first = passes[block] } end
    return { first = costs:first(context, k) * share + step, draft = passes }
  end)
end

function PassCosts:reading(n)
  return n > 0 and self.sequences * self.costs:read(n) or 0
end

function PassCosts:follow(seq)
  local learned = self:now() ~= self.revision
  if not learned and seq:length() <= self.until_length then return 1 end
  local before = self.verify[1]
  self:ask(seq)
  return learned and self.verify[1] / before or 1
end

function PassCosts:observe(out)
  local rows, read = out.drafted + 1, out.experts_read
  if read == 0 then return 0 end
  local costs, context, expected = self.costs, self.until_length, self.experts:expected(rows)
  self.experts:observe(rows, out)
  return costs:target(rows, context, nil, read) - costs:target(rows, context, nil, expected)
end

function PassCosts:worth(R, alpha, n, loss_budget)
  return alpha >= R * self.row[n] and self.verify[n + 2] <= loss_budget.longest
end

function PassCosts:choose(tree, n, alpha, R, loss_budget, left, best)
  if n == 0 then return 0, 0 end
  local verify, sum, most, k = self.verify, 0, 0, 0
  tree:best(n, 1, n, best)
  local stake = loss_budget:stake(left, verify[2] - verify[1], alpha[best[1]])
  for i = 1, n do
    local ms = verify[i + 1] - verify[1]
    sum = sum + alpha[best[i]]
    if ms <= stake and sum - R * ms > most then most, k = sum - R * ms, i end
  end
  if k < n then tree:keep(k) end
  return k, verify[k + 1] - verify[1] + (n - k) * self.node
end

return function(costs, seq)
  local p = setmetatable({ costs = costs, experts = experts(costs) }, PassCosts)
  p:ask(seq)
  return p
end
