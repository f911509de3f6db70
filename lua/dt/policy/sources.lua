-- policy.sources(list[, costs]): guesses that need no draft pass. Each source of the list is asked for the token that
-- follows the root and then for one after each guess; the most probable answer is offered as the next guess.
--
-- The probability q of a guess is the share of earlier guesses of the same source and kind that were right:
--
--   q = right / seen,  where both begin with an estimate that counts as DOUBT guesses
--
-- A kind is what a source knows about the reliability of its guess; for copies, how many tokens matched. Where the
-- draft model has been asked at the same node, guesses are counted separately by whether its likeliest token is the
-- same. The first guess of an iteration is counted even if it was not verified: the text shows whether it was right.
-- With self.costs the counts are kept for later texts (costs:keep).
--
--   c:find(seq)              begins an iteration
--   c:next(tree) -> token, q   the guess after the root or after the last node added; nil: there is none
--   c:compare(tree, u) -> q, left   the guess follows node u. q: its probability, which also considers the draft model
--                            if u has been drafted from; left: the factor by which the guess reduces the probabilities
--                            of the draft model's other candidates, (1 - q) / (1 - p) and at most 1, where p is the
--                            draft model's probability of the guessed token
--   c:add(tree, u) -> node   makes the guess a node; the next guess follows it
--   c:stop()                 the guess is not worth a node: no more guesses in this iteration
--   c:needs(q) -> n          the fewest tokens that must match an earlier passage for a copy of probability q or more;
--                            if no number is enough, the largest that is counted separately. nil: unknown, since there
--                            are sources other than copies of the text
--   c:observe(tree, out)     ends the iteration: counts which guesses were right
--
-- A source is policy.copies, policy.forced, false (none), or a table:
--
--   s.tag                    the name of its nodes in traces (tree:tag)
--   s.estimates              a list: for each kind, the probability that a guess is right, before any was seen
--   s:find(seq)              begins an iteration
--   s:follow(tree, u) -> token, kind   its guess after u, which is the root or the node added last; kind: an index of
--                            s.estimates; nil: no guess
--   s:observe(tree, out)     optional: ends the iteration
--   s.needs                  true if kind n means that the last n tokens of the text match an earlier passage
local exp, log, max, min = math.exp, math.log, math.max, math.min
local ipairs, select, setmetatable = ipairs, select, setmetatable

local DOUBT = 2 -- the first estimate of a kind counts as this many guesses
local RECALLED = 4 -- what earlier texts taught counts as at most this many
-- Each kind is counted three times: at index kind where the draft model was not asked, at kind + AGREES * (number of
-- kinds) where it agrees, and at kind + DIFFERS * (number of kinds) where it differs.
local AGREES, DIFFERS = 1, 2

local Sources = {}
Sources.__index = Sources

-- Counts a guess of this kind that was right or wrong, also in the list that is kept for later texts.
function Sources:learn(kind, right)
  local i = #self
  while kind <= self.base[i] do i = i - 1 end
  self.seen[kind] = self.seen[kind] + 1
  if right then self.right[kind] = self.right[kind] + 1 end
  local known, own, n = self.known[i], kind - self.base[i], 3 * #self[i].estimates
  known[own], known[n + own], self.learned[i] = self.right[kind], self.seen[kind], true
end

function Sources:find(seq)
  local length = seq:length()
  if self.first and length > self.length then self:learn(self.first, seq:token(self.length + 1) == self.said) end
  self.first, self.length = nil, length
  self.n, self.tip, self.open, self.held = 0, 0, true, seq.grammar
  for i = 1, #self do self[i]:find(seq) end
end

-- Reads what earlier texts taught about a source (costs:keep): first `right`, then `seen`, of each of n kinds. Counts
-- are scaled down to RECALLED guesses a kind at most, so that this text can still change them. Returns whether there
-- was something to read.
local function recall(self, source, base, n)
  local known = self.costs and self.costs:recall(source.tag)
  if not known or #known ~= 2 * n then return false end
  for kind = 1, n do
    local seen = max(known[n + kind], DOUBT)
    local counts = min(seen, RECALLED) / seen
    self.right[base + kind], self.seen[base + kind] = max(0, min(known[kind], seen)) * counts, seen * counts
  end
  return true
end

-- The list of a source's counts that is kept for later texts: first `right`, then `seen`.
local function counts(self, source, base)
  local list, n = {}, 3 * #source.estimates
  for kind = 1, n do list[kind], list[n + kind] = self.right[base + kind], self.seen[base + kind] end
  return list
end

-- Fills the counts of a source, which begin after index `base`: from earlier texts or, if there were none, from its
-- estimates. If the draft model agrees, half of the doubt is removed; if it differs, half of the probability. Returns
-- the base of the next source.
local function first_estimates(self, source, base)
  local right, seen = self.right, self.seen
  local kinds = #source.estimates
  if recall(self, source, base, 3 * kinds) then return base + 3 * kinds end
  for kind, q in ipairs(source.estimates) do
    local alone = base + kind
    local agrees, differs = alone + AGREES * kinds, alone + DIFFERS * kinds
    right[alone], right[agrees], right[differs] = DOUBT * q, DOUBT * (1 + q) / 2, DOUBT * q / 2
    seen[alone], seen[agrees], seen[differs] = DOUBT, DOUBT, DOUBT
  end
  return base + 3 * kinds
end

function Sources:next(tree)
  if not self.open then return nil end
  local right, seen, best, most = self.right, self.seen, nil, 0
  for i = 1, #self do
    local token, kind = self[i]:follow(tree, self.tip)
    if token and (not self.held or tree:allowed(self.tip, token)) then
      kind = self.base[i] + kind
      local q = right[kind] / seen[kind]
      if q > most then best, most, self.token, self.kind = i, q, token, kind end
    end
  end
  if not best then
    self.open = false
    return nil
  end
  self.from, self.q = self[best], most
  if self.n == 0 then self.first, self.said = self.kind, self.token end
  return self.token, most
end

function Sources:compare(tree, u)
  if not self.open or not tree:drafted(u) then return self.q, 1 end
  local rank = tree:rank(u, self.token) or 0
  local p = rank > 0 and exp((select(2, tree:candidate(u, rank)))) or 0
  local kind = self.kind + (rank == 1 and AGREES or DIFFERS) * #self.from.estimates
  self.kind, self.q = kind, self.right[kind] / self.seen[kind]
  if self.n == 0 then self.first = kind end
  return self.q, min(1, (1 - self.q) / (1 - p))
end

function Sources:add(tree, u)
  local v, n = tree:add(u, self.token, log(self.q)), self.n + 1
  tree:tag(v, self.from.tag)
  self.n, self.node[n], self.kind_of[n], self.tip = n, v, self.kind, v
  return v
end

function Sources:stop() self.open = false end

function Sources:needs(q)
  local least, right, seen = nil, self.right, self.seen
  for i = 1, #self do
    local base, kind, last = self.base[i], 1, #self[i].estimates
    if not self[i].needs then return nil end
    while kind < last and right[base + kind] < q * seen[base + kind] do kind = kind + 1 end
    least = min(least or kind, kind)
  end
  return least
end

function Sources:observe(tree, out)
  for i = 1, self.n do
    local accepted = tree:accepted(self.node[i])
    if accepted ~= nil then -- its parent was accepted
      self:learn(self.kind_of[i], accepted)
      if i == 1 then self.first = nil end
    end
  end
  self.n = 0
  for i = 1, #self do
    local source = self[i]
    if source.observe then source:observe(tree, out) end
    if self.learned[i] and self.costs then self.costs:keep(source.tag, self.known[i]) end
    self.learned[i] = false
  end
end

return function(list, costs)
  local self, base = { costs = costs, known = {}, learned = {}, right = {}, seen = {}, node = {}, kind_of = {},
                       base = {}, n = 0 }, 0
  for i = 1, #list do
    local source, n = list[i], #self + 1
    if source then
      self[n], self.base[n] = source, base
      base = first_estimates(self, source, base)
      self.known[n] = counts(self, source, self.base[n])
    end
  end
  return setmetatable(self, Sources)
end
