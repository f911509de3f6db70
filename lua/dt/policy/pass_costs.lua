-- policy.pass_costs(costs, seq): milliseconds of passes at the current context, from self.costs, each asked for once.
-- The policy's own overhead, a multiple of costs:cache_miss, is added. If s sequences run at once, all of them wait for
-- each: a pass that k of them share costs each of these s / k of it, and what one reads alone costs s times as much.
--
--   p.verify[n]     a target pass over n rows, the root's among them
--   p.plain         plain decoding's pass: p.verify[1] without the overhead
--   p.row[n]        one more row after n nodes, averaged over the rows that share its cost best
--   p.node          overhead of a node that is added
--   p.overhead      of an iteration that looks for drafts
--   p.resume        additional overhead after a pause
--   p.saved         overhead of plain decoding with the policy, which a pause saves
--   p.sequences     s
--   p.models[m][k]  of a draft model: { first = its first pass of an iteration, over the root, draft = { another one
--                   over n nodes } }, shared by k sequences; without any, first is huge
--   p:reading(m, n)   a pass in which draft model m reads n tokens of one sequence
--   p:follow(seq)   call as an iteration begins: asks again if costs have changed. Returns the time of a pass now over
--                   that before, if learned costs differ; otherwise 1
--   p:observe(out) -> ms   an iteration ends: how much longer its target pass took than verify[n] says, for the experts
--                   that it read; 0 where there are none
--   p:worth(R, alpha, n, loss_budget)   whether a node of this alpha is worth its row after n others, and the budget
--                   allows for losing that many rows
--   p:choose(tree, n, alpha, R, loss_budget, left, best) -> k, ms   of nodes 1..n, whose probabilities are alpha,
--                   keeps those of the likeliest that add most tokens, less R for each ms of their rows: best[1..k].
--                   The budget decides how many of the `left` ms they may take. ms: of rows kept, and of growing all
local experts = require "dt.policy.experts"
local ceil, huge, max, min, setmetatable = math.ceil, math.huge, math.max, math.min, setmetatable

-- Overhead of a policy for each sequence, in cache misses. After one pass: of an iteration that looks for drafts, of a
-- draft pass, of plain decoding; after several: of an iteration that looks; without a pass in between: of a node.
-- From runs on a Zen 3, in us:
--   a pass of    looking              after a pause   plain    a node    cache_miss(1), (2), (0)
--   0.2 ms            20 to 40          60 to 77        4.4       9            10 to 20, 45 to 70, 1.4 to 2.5
--     7 ms              116               138            32      10                  70, 74, 4
-- On a Zen 5 looking takes 7 us, 22 after a pause, and 55 after a pass of 4.5 ms.
local LOOK, STEP, PLAIN, RESUME, NODE = 2, 0.85, 0.25, 1.25, 4
local AHEAD = 4  -- rows that may share the cost of one: kernels take several at once, so one of them is expensive
local SAME = 128 -- tokens for which costs stay: see self.costs

local PassCosts = {}
PassCosts.__index = PassCosts

-- A list whose items are f(n), each asked for when it is needed first.
local function asked(f)
  return setmetatable({}, { __index = function(t, n)
    local x = f(n)
    t[n] = x
    return x
  end })
end

-- Changes when costs do.
function PassCosts:now() return self.costs:revision() + self.experts.revision end

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
  self.models = { asked(function() return { first = huge } end) }
  for m = 1, min(seq.models, max(costs:models(), 1)) do -- a table that knows of no draft raises
    self.models[m] = asked(function(k)
      local share = sequences / k
      return { first = costs:first(context, k, m) * share + step, draft = asked(function(n)
        return costs:draft(n, context, k, m) * share + step
      end) }
    end)
  end
end

function PassCosts:reading(m, n)
  return n > 0 and self.sequences * self.costs:draft(n, self.until_length, 1, m) or 0
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
