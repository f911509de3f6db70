-- rate: no thresholds to tune. It maximizes tokens per millisecond by Dinkelbach's rule for fractional programs (1967):
-- with R the rate reached so far, a thing is worth doing iff the tokens it is expected to add are at least R times the
-- time it costs. Times are those of self.costs (policy.pass_costs).
--
-- Copies of the text and of a corpus (policy.sources) cost no pass, guesses of the draft model, if there is one, or of
-- one of two (policy.guesses), a pass for each level. Each offers tokens after a node with probabilities that what came
-- true has calibrated; alpha(v), the estimated probability that v is accepted, is alpha of its parent times that. Where
-- both were asked they share: other tokens get what the copy leaves.
--
-- A loss budget (policy.loss_budget) limits losses: by the costs, drafts cost at most 1 % of plain decoding's time over
-- all texts of a pair, beyond an opening credit of 10 target passes, and at most 5 % in one text of 200 tokens or more.
local policy = require "dt.policy"
local exp, log = math.exp, math.log

local Rate = policy.define {
  name = "rate",
  doc  = "guesses what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true, draft = "optional", corpus = "optional" },
}

local WIDEST, MOST = 6, 64 -- drafted children of a node; nodes of a tree

function Rate:init(seq)
  self.pass_costs, self.loss_budget = policy.pass_costs(self.costs, seq), policy.loss_budget(self.costs, seq)
  self.pace, self.guesses = policy.pace(self.pass_costs), policy.guesses(self.pass_costs, seq)
  self.sources = policy.sources({ policy.copies(), seq.grammar and policy.forced(seq),
                                  self.corpus and policy.copies(self.corpus) }, self.costs)
  self.alpha = { [0] = 1 }                       -- by node
  self.level, self.below, self.best = {}, {}, {} -- nodes
end

-- Adds those children of u that the draft model offers and that are worth their rows, `copied` being none of them.
-- alpha is that of u, or what a copy leaves of it. The ids of those worth a row of a draft pass, too, follow below[m].
function Rate:branch(tree, u, alpha, copied, R, least, m)
  local of, pass_costs, below, n = self.alpha, self.pass_costs, self.below, self.n
  for rank = 1, WIDEST do
    local t, logp = tree:candidate(u, rank)
    if t ~= copied then
      local value = t and alpha * exp(logp) or 0
      if n == MOST or not pass_costs:worth(R, value, n, self.loss_budget) then break end
      local v = tree:add(u, t, alpha == of[u] and logp or log(value / of[u]))
      tree:tag(v, "draft")
      n, of[v], self.guesses.pass[v] = n + 1, value, self.guesses.passes
      if value >= least then
        m = m + 1
        below[m] = v
      end
    end
  end
  self.n = n
  return m
end

-- The next level: the children of this one's n nodes that are worth their rows, the copy after the last node behind
-- all others. drafted: whether the draft model was asked. How many are to be drafted from, and the sum of their alpha.
function Rate:extend(tree, n, copied, drafted, R)
  local alpha, sources, level, below, tip = self.alpha, self.sources, self.level, self.below, self.level[n]
  local m, sum, copy, q, left = 0, 0, nil, sources:compare(tree, tip)
  if copied and self.pass_costs:worth(R, alpha[tip] * q, self.n, self.loss_budget) then
    copy, self.n = sources:add(tree, tip), self.n + 1
    alpha[copy], self.guesses.pass[copy] = alpha[tip] * q, 0
  else
    sources:stop()
  end
  if drafted then
    local least = self.guesses:least(R)
    for i = 1, n do
      local u, is_tip = level[i], copied and i == n
      m = self:branch(tree, u, is_tip and alpha[u] * left or alpha[u], is_tip and copied, R, least, m)
    end
  end
  if copy then
    m = m + 1
    below[m] = copy
  end
  for i = 1, m do sum = sum + alpha[below[i]] end
  self.level, self.below = below, level
  return m, sum
end

-- An iteration begins, after those that the host ran alone. Returns R; nil: it pauses and does not even look.
function Rate:begin(seq)
  self.spent, self.n, self.level[1] = nil, 0, 0
  local pass_costs, scale, _, paused = self.pass_costs, self.pass_costs:follow(seq), self.loss_budget:pauses()
  local R, budget = self.pace:begin(scale, paused), self.loss_budget:budget(pass_costs)
  self.guesses:begin(budget and budget - pass_costs.overhead or 0, paused)
  return budget and R
end

function Rate:draft(tree)
  local sources, guesses, R = self.sources, self.guesses, self:begin(tree.seq)
  if not R then return end
  local n, open = 1, 1
  sources:find(tree.seq)
  for depth = 0, tree:depth_room() - 1 do
    local tip = self.level[n]
    local copied, q = sources:next(tree)
    local rest = copied and open - self.alpha[tip] * q or open -- what the copy leaves to the draft model
    local drafts = guesses:worth(R, rest, n, depth)
    if not (drafts or copied) then break end
    if drafts then guesses:draft(tree, self.level, n, rest) end
    n, open = self:extend(tree, n, copied, drafts, R)
    if n == 0 or self.n >= MOST then break end
  end
  local left = guesses.budget - guesses.ms
  local k, ms = self.pass_costs:choose(tree, self.n, self.alpha, R, self.loss_budget, left, self.best)
  guesses:settle(R, self.alpha, self.best, k)
  self.spent = guesses.ms + self.pass_costs.verify[1] + ms
end

function Rate:observe(tree, out)
  if not self.spent then return end
  local spent, plain = self.spent + self.pass_costs:observe(out), self.pass_costs.plain
  self.pace:observe(out.committed, spent)
  self.sources:observe(tree, out)
  self.guesses:observe(tree, out)
  self.loss_budget:spend(spent, plain, out.accepted)
  if self.n > 0 then return end
  local quiet, needs = self.guesses:quiet(1 / plain), self.sources:needs(self.pass_costs.row[0] / plain)
  if needs and quiet > 0 and self.loss_budget:may_resume() then tree.seq:pause(quiet, needs) end
end

return Rate
