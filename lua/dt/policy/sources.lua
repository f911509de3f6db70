-- policy.sources(list[, costs]): guesses that cost no pass, one after another, of several sources. After the root and
-- after each of their guesses every source is asked, and the likeliest token is offered. A token is as likely as those
-- of its source and kind came true; where the draft model was asked, kinds are apart by whether it finds the same token
-- likeliest.
-- Of each iteration the first guess tells, verified or not: the text goes on with it or does not.
-- With self.costs, later texts begin with what earlier ones taught (costs:keep).
--
--   c:find(seq)              an iteration begins
--   c:next(tree) -> token, q what is offered behind the root or the last guess; nil: nothing
--   c:compare(tree, u) -> q, left   of u, whose next token that is: q as it is if u was drafted from, and the share of
--                            what the draft model gives to other tokens that is left to them
--   c:add(tree, u) -> node   makes it a node, behind which sources are asked again
--   c:stop()                 it is not worth a node: nothing is offered behind it
--   c:needs(q) -> n          nothing as likely as q is offered before n of the last tokens stood before; where none
--                            is as likely, as many as are told apart; nil: there are other kinds
--   c:observe(tree, out)     learns which came true
--
-- A source: policy.copies, policy.forced, false for none, or a table of the policy's own:
--
--   s.tag                    the name of its nodes in traces (tree:tag)
--   s.estimates              a list: the probability of each of its kinds before any was seen
--   s:find(seq)              an iteration begins
--   s:follow(tree, u) -> token, kind   its guess behind u, the root or the node that was added last, and the guess's
--                            kind, 1..#estimates; nil: none
--   s:observe(tree, out)     if there is one: an iteration ends
--   s.needs                  if true: a kind is as many of the text's last tokens that stood before
local exp, log, max, min = math.exp, math.log, math.max, math.min
local ipairs, select, setmetatable = ipairs, select, setmetatable

local DOUBT = 2 -- guesses that the estimate of a kind counts as
local RECALLED = 4 -- and those of earlier texts, at most
local AGREES, DIFFERS = 1, 2 -- kinds behind those that stand alone, in so many times kinds

local Sources = {}
Sources.__index = Sources

function Sources:learn(kind, right)
  self.learned = true
  self.seen[kind] = self.seen[kind] + 1
  if right then self.right[kind] = self.right[kind] + 1 end
end

function Sources:find(seq)
  local length = seq:length()
  if self.first and length > self.length then self:learn(self.first, seq:token(self.length + 1) == self.said) end
  self.first, self.length = nil, length
  self.n, self.tip, self.open, self.held = 0, 0, true, seq.grammar
  for i = 1, #self do self[i]:find(seq) end
end

-- What earlier texts taught of a source (costs:keep): a list of `right` and `seen` for each of n kinds, each kind as if
-- it had been seen RECALLED times at most.
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

local function keep(self, source, base)
  local n = 3 * #source.estimates
  local known = self.known
  for kind = 1, n do known[kind], known[n + kind] = self.right[base + kind], self.seen[base + kind] end
  for i = 2 * n + 1, #known do known[i] = nil end
  self.costs:keep(source.tag, known)
end

-- Where kinds of a source are counted: those that stand alone, behind them those with which the draft model agrees, and
-- then the others.
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
    if self.learned and self.costs then keep(self, source, self.base[i]) end
  end
  self.learned = false
end

return function(list, costs)
  local self, base = { costs = costs, known = {}, right = {}, seen = {}, node = {}, kind_of = {}, base = {}, n = 0 }, 0
  for i = 1, #list do
    local source, n = list[i], #self + 1
    if source then
      self[n], self.base[n] = source, base
      base = first_estimates(self, source, base)
    end
  end
  return setmetatable(self, Sources)
end
