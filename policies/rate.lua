-- rate, the default policy: it maximizes the expected number of tokens per millisecond and has no parameters.
-- policies/RATE.md follows one iteration with all its numbers.
--
-- Input: candidate tokens, each with the probability that it is right after its parent, and the cost of passes in
-- milliseconds (self.costs). Output: the tree, and the nodes of it that are verified.
--
-- The rule is Dinkelbach's for maximizing a ratio (W. Dinkelbach, "On nonlinear fractional programming", 1967). R is
-- the pace: tokens per millisecond so far (policy.pace). A step is worth its time iff
--
--   tokens that it is expected to add  >=  R * milliseconds that it takes
--
-- since such a step does not lower the ratio of tokens to time. For a row of the target's pass, the tokens are alpha of
-- its node, the probability that the node is accepted: alpha of its parent times its own probability. For a draft pass,
-- they are what earlier draft passes have added (policy.guesses).
--
-- Candidates come from two kinds of sources. Copies of the text or of a corpus (policy.sources) need no draft pass.
-- Those of the draft model, or of one of two draft models, need a pass for each level of the tree. The probabilities of
-- both are calibrated by how often earlier ones were right. If both offer candidates after the same node, those of the
-- draft model share the probability that the copy is wrong.
--
-- A loss budget (policy.loss_budget) limits what wrong expectations can cost. By the costs of passes, drafts take at
-- most 1 % of plain decoding's time over all texts of a pair, after an opening credit of 10 target passes, and at most
-- 5 % in a text of 200 tokens or more.
local policy = require "dt.policy"
local exp, log = math.exp, math.log

local Rate = policy.define {
  name = "rate",
  doc  = "guesses what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true, draft = "optional", corpus = "optional" },
}

local WIDEST, MOST = 6, 64 -- limits: children of a node from the draft model; nodes of a tree

function Rate:init(seq)
  self.pass_costs, self.loss_budget = policy.pass_costs(self.costs, seq), policy.loss_budget(self.costs, seq)
  self.pace, self.guesses = policy.pace(self.pass_costs), policy.guesses(self.pass_costs, seq)
  self.sources = policy.sources({ policy.copies(), seq.grammar and policy.forced(seq),
                                  self.corpus and policy.copies(self.corpus) }, self.costs)
  self.alpha = { [0] = 1 }                       -- of each node; the root (0) is always right
  self.level, self.below, self.best = {}, {}, {} -- lists of nodes: this level, the next one, those to verify
end

-- Adds children to node u: the draft model's candidates that are worth their rows, except the token `copied`, which
-- has been considered already. alpha: the probability that the candidates share: alpha of u or, after a copy, the part
-- that the copy leaves. Children with an alpha of at least `least` are also worth a row of the next draft pass; they
-- are appended to the list `below`, which holds m nodes. Returns the new m.
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

-- Adds the next level: the children of this level's n nodes that are worth their rows. copied: the token, if any, that
-- a source offers after the last node; its node becomes the last of the new level, because the next copy continues from
-- there. drafted: whether the draft model has run over this level. Returns the number of nodes of the new level, and
-- the sum of their alpha: the probability that the text reaches that level.
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

-- Begins an iteration, possibly after some that the host made while drafting was paused. Returns the pace R in tokens
-- per millisecond, or nil if the loss budget does not even cover looking for guesses.
function Rate:begin(seq)
  self.spent, self.n, self.level[1] = nil, 0, 0
  local pass_costs, scale, _, paused = self.pass_costs, self.pass_costs:follow(seq), self.loss_budget:pauses()
  local R, budget = self.pace:begin(scale, paused), self.loss_budget:budget(pass_costs)
  self.guesses:begin(budget and budget - pass_costs.overhead or 0, paused)
  return budget and R
end

-- Grows the tree level by level until neither a copy nor a draft pass is worth its time, then chooses what is verified.
function Rate:draft(tree)
  local sources, guesses, R = self.sources, self.guesses, self:begin(tree.seq)
  if not R then return end
  local n, open = 1, 1
  sources:find(tree.seq)
  for depth = 0, tree:depth_room() - 1 do
    local tip = self.level[n]
    local copied, q = sources:next(tree)
    -- open: the probability that the text reaches this level; rest: the part of it that a copy leaves to the draft
    local rest = copied and open - self.alpha[tip] * q or open
    local drafts = guesses:worth(R, rest, n, depth)
    if not (drafts or copied) then break end
    if drafts then guesses:draft(tree, self.level, n, rest, R) end
    n, open = self:extend(tree, n, copied, drafts, R)
    if n == 0 or self.n >= MOST then break end
  end
  local left = guesses.budget - guesses.ms
  local k, ms = self.pass_costs:choose(tree, self.n, self.alpha, R, self.loss_budget, left, self.best)
  guesses:settle(R, self.alpha, self.best, k)
  self.spent = guesses.ms + self.pass_costs.verify[1] + ms
end

-- Learns from the iteration. Time is counted in self.costs rather than by the clock, so that with a table of costs
-- runs repeat. After an iteration without nodes drafting may pause: until a draft pass may pay for itself (`quiet`
-- iterations), or until the end of the text repeats an earlier passage of `needs` tokens, so that a copy may pay. What
-- was expected is logged for --explain.
function Rate:observe(tree, out)
  if not self.spent then return end
  local spent, plain = self.spent + self.pass_costs:observe(out), self.pass_costs.plain
  self.pace:observe(out.committed, spent)
  self.sources:observe(tree, out)
  self.guesses:observe(tree, out)
  self.loss_budget:spend(spent, plain, out.accepted)
  if self.n > 0 then return end
  local quiet, needs = self.guesses:quiet(1 / plain), self.sources:needs(self.pass_costs.row[0] / plain)
  self.guesses:log()
  if needs then tree.seq:log("copy_needs", needs) end
  if needs and quiet > 0 and self.loss_budget:may_resume() then tree.seq:pause(quiet, needs) end
end

return Rate
