-- rate: no thresholds to tune. It maximizes tokens per millisecond by Dinkelbach's rule for fractional programs (1967):
-- with R the rate reached so far, a thing is worth doing iff the tokens it is expected to add are at least R times the
-- time it costs. Times (T: a target pass, D: a draft pass) are those that runs taught or, to repeat a run, a table's.
--
-- Guesses have two sources. Those of the draft model, if there is one, cost a pass for each level. The text itself
-- costs nothing: where its last tokens stood before, what followed them may follow again (a copy). alpha(v), the
-- estimated probability that v is accepted, is alpha of its parent times q(v): under the draft model, sharpened by what
-- came true so far; of a copy, how many of those after as many equal tokens were right. Where both were asked they
-- share: a copy that is also the draft model's likeliest is of another kind than one that is not, and other tokens get
-- what the copy leaves.
--
-- Whether a draft pass is worth its time is learned from those before: what they brought per token that was expected to
-- reach them, less what the rows for it cost.
local policy = require "dt.policy"
local exp, log, min, max, huge = math.exp, math.log, math.min, math.max, math.huge

local Rate = policy.define {
  name = "rate",
  doc  = "guesses what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true, draft = "optional" },
}

local WIDEST = 6             -- drafted children per node
local MOST, AHEAD = 64, 2    -- nodes of a tree; rows that the price of one more is averaged over: times are uneven
local PAGE, STEP = 0.005, 0.01 -- ms of this page for each sequence: of an iteration; of a draft pass, beside it
local DOUBT = 2              -- copies that what was seen of such is held against
local FOUND, LONGEST = 3, 16 -- equal tokens before a copy: at least, with a draft model; what more count as
local AGREES, DIFFERS = 16, 32 -- added to a copy's equal tokens: the draft model's likeliest is the same, another
local NEAR = 2               -- levels that are drafted beyond as many as were accepted of late
local START = 3              -- tokens per target pass taken to be reached at first, lest first trees are lavish
local BROUGHT = { greedy = { 0.8, 0.65 }, drawn = { 0.75, 0.45 } } -- by draft passes, at first, if rows cost nothing
local KNOWN = 20             -- iterations with drafts that these stand for
local FORGET = 0.01          -- of what is learned, in each
local PAUSE, LONGEST_PAUSE = 4, 64 -- iterations without drafts before one to see: at first, and twice as many each time
-- Where this page takes such a part of a pass: after so many iterations in which nothing was worth its row it sleeps
-- for one, after twice as many for two, up to so many.
local NOTED, DULL, NAP = 0.01, 8, 8

function Rate:init(seq)
  self.right, self.seen = {}, {} -- [kind]: of copies
  for equal = 1, LONGEST do
    local q = equal / (equal + 2)
    for more, chance in pairs { [0] = q, [AGREES] = (1 + q) / 2, [DIFFERS] = q / 2 } do
      self.right[equal + more], self.seen[equal + more] = DOUBT * chance, DOUBT
    end
  end
  self.sharpen = policy.sharpen(true)
  self.alpha, self.kind = { [0] = 1 }, {}                  -- [node]: alpha; the kind of a copy
  self.copies = {}                                         -- nodes
  self.level, self.next = {}, {}                           -- nodes; the copy goes on from the last
  self.open, self.net, self.took = {}, {}, {}              -- [i]: of the i-th draft pass: see settle
  self.pass, self.best = {}, {}                            -- [node]: its own, 0: a copy; nodes, the likeliest first
  self.least = seq.drafts and FOUND or 1 -- equal tokens: a draft model knows better than a copy after fewer
  self:price(seq)
  self.tokens, self.ms = START, self.T[1]
  local brought, worth = seq.coupled and BROUGHT.drawn or BROUGHT.greedy, max(0, 1 - self.row[0] / self.T[1]) ^ 2
  self.promise = brought[1] * worth -- a guess is worth what p is above its row's price, and p is anything up to 1
  self.brings, self.asked = { self.promise, brought[2] * worth }, KNOWN -- see settle
  self.idle, self.pause = 0, PAUSE       -- iterations without drafts: how many; as many as there may be
  self.reach = 0                         -- the most nodes accepted of late
  self.dull, self.nap = 0, 0             -- iterations without a node: in a row; to come without looking for one
end

-- A table of f(n), each asked for when it is needed first.
local function asked(f)
  return setmetatable({}, { __index = function(t, n)
    local x = f(n)
    t[n] = x
    return x
  end })
end

-- Costs at the context of now, which change every 128 tokens. Where what was learned has changed them, the time so far
-- is counted anew.
function Rate:price(seq)
  local costs, context, sequences = self.costs, seq:length(), self.costs:sequences()
  local revision, before = costs:revision(), self.T and self.T[1]
  self.until_length, self.page = (context + 127) // 128 * 128, PAGE * sequences
  local T = asked(function(n) return costs:target(n, context) + self.page end)
  if before and revision ~= self.revision then self.ms = self.ms * T[1] / before end
  self.T, self.revision = T, revision
  self.D = asked(function(n) return costs:draft(n, context) + STEP * sequences end)
  self.first = seq.drafts and costs:first(context) + STEP * sequences or huge
  self.row = asked(function(n) return (T[n + 1 + AHEAD] - T[n + 1]) / AHEAD end) -- of the row after n nodes
end

-- The copy after a node, of the kind that it is now that the draft model was asked: the kind, its q, and what that
-- leaves to the other tokens, of what the draft model gives them.
local function compare(self, tree, tip, copied, kind)
  local rank = tree:rank(tip, copied) or 0
  local logp = rank > 0 and select(2, tree:candidate(tip, rank)) or -huge
  kind = kind + (rank == 1 and AGREES or DIFFERS)
  local q = self.right[kind] / self.seen[kind]
  return kind, q, min(1, (1 - q) / (1 - exp(logp)))
end

-- Adds the children of u that are worth their row, of those that the draft model has; `copied` is none of them. alpha
-- is that of u, or what a copy leaves of it. Now there are n nodes; those worth a row of a draft pass follow in next.
local function branch(self, tree, u, alpha, copied, R, n, next, deeper, least)
  local of, row = self.alpha, self.row
  for rank = 1, WIDEST do
    local t, logp = tree:candidate(u, rank)
    if t ~= copied then
      local value = t and alpha * exp(logp) or 0
      if n == MOST or value < R * row[n] then break end
      local v = tree:add(u, t, alpha == of[u] and logp or log(value / of[u]))
      n, of[v] = n + 1, value
      if value >= least then
        deeper = deeper + 1
        next[deeper] = v
      end
    end
  end
  return n, deeper
end

-- How many of the n nodes, the likeliest first, are worth their rows: the others are not verified.
local function choose(self, tree, n, R)
  local T, alpha, best, sum, most, k = self.T, self.alpha, self.best, 0, 0, 0
  tree:best(n, 1, n, best)
  for i = 1, n do
    sum = sum + alpha[best[i]]
    local net = sum - R * (T[i + 1] - T[1])
    if net > most then most, k = net, i end
  end
  if k < n then tree:keep(k) end
  return k
end

-- Learns what the draft passes of this iteration brought, per token that was expected to reach them: their nodes among
-- the k that are verified, less the rows of these. brings[2] is of a pass below the first, or of the first if there is
-- none: fewer tokens reach each further one, so below a pass that is not worth its time none is. brings[1] is of the
-- first and all below, less their time.
local function settle(self, passes, k, R)
  local best, alpha, pass, net, brings, below = self.best, self.alpha, self.pass, self.net, self.brings, 0
  local price = k > 0 and R * (self.T[k + 1] - self.T[1]) / k
  for i = 1, k do
    local v = best[i]
    local by = pass[v]
    if by > 0 then net[by] = net[by] + alpha[v] - price end
  end
  self.asked = self.asked + 1
  local rate = FORGET + 1 / self.asked
  for i = passes, passes > 1 and 2 or 1, -1 do
    brings[2] = brings[2] + rate * (net[i] / self.open[i] - brings[2])
    if i > 1 then below = below + net[i] - R * self.took[i] end
  end
  brings[1] = brings[1] + rate * ((net[1] + below) / self.open[1] - brings[1])
  self.idle, self.pause = 0, brings[1] < R * self.first and min(2 * self.pause, LONGEST_PAUSE) or PAUSE
end

function Rate:draft(tree)
  if self.nap > 0 then
    self.nap, self.drawn, self.spent, self.n_copies = self.nap - 1, false, self.T[1], 0
    return
  end
  local seq = tree.seq
  local length = seq:length()
  if length > self.until_length or self.costs:revision() ~= self.revision then self:price(seq) end
  local row, alpha, T, brings, level, next = self.row, self.alpha, self.T, self.brings, self.level, self.next
  local R, plain = self.tokens / self.ms, 1 / T[1]
  if R < plain then R = plain end -- which is always to be had
  local at, equal = seq:match(LONGEST)
  if at and equal < self.least then at = nil end
  local n, width, sum, ms, copies, passes, depth, least = 0, 1, 1, 0, 0, 0, 0, 0
  local far = NEAR + self.reach -- errors of probabilities multiply with the depth, and nothing may be learned yet
  local room = tree:depth_room()
  level[1] = tree.root
  while width > 0 and n < MOST and depth < room do
    local tip, open, copied, kind, q, left = level[width], sum, nil, 0, 0, 1
    if at then
      at = at + 1
      copied = at <= length and seq:token(at) or tree:token(self.copies[at - length])
      kind = min(equal, LONGEST)
      q = self.right[kind] / self.seen[kind]
      open = sum - alpha[tip] * q -- what the copy leaves to the draft model
    end
    local pass, draws = self.first, nil
    if passes == 0 then
      draws = brings[1] * open >= R * pass or self.idle >= self.pause and self.promise * open >= R * pass
    elseif depth < far then
      pass = self.D[width]
      draws = brings[2] * open >= R * pass
    end
    if not draws and not copied then break end
    if draws then
      if passes == 0 then
        self.sharpen:apply(tree)
        least = R * (self.D[2] - self.D[1]) / (brings[2] > 0.01 and brings[2] or 0.01)
      end
      tree:draft_step(level, width)
      passes, ms = passes + 1, ms + pass
      self.open[passes], self.net[passes], self.took[passes] = open, 0, pass
      if copied then kind, q, left = compare(self, tree, tip, copied, kind) end
    end
    local copy, value, deeper, total = nil, alpha[tip] * q, 0, 0
    if copied and value >= R * row[n] then
      copy = tree:add(tip, copied, log(q))
      n, copies = n + 1, copies + 1
      alpha[copy], self.pass[copy], self.kind[copy], self.copies[copies] = value, 0, kind, copy
    end
    if draws then
      local before = n
      for i = 1, width do
        local u, is_tip = level[i], copied and i == width
        local rest = is_tip and alpha[u] * left or alpha[u]
        n, deeper = branch(self, tree, u, rest, is_tip and copied, R, n, next, deeper, least)
      end
      for v = before + 1, n do self.pass[v] = passes end
      for i = 1, deeper do total = total + alpha[next[i]] end
    end
    if copy then
      deeper, total, equal = deeper + 1, total + value, equal + 1
      next[deeper] = copy
    else
      at = nil
    end
    level, next, width, sum, depth = next, level, deeper, total, depth + 1
  end
  self.level, self.next = level, next
  local k = n > 0 and choose(self, tree, n, R) or 0
  if passes > 0 then
    settle(self, passes, k, R)
  else -- who asks nothing learns nothing
    self.idle = self.idle + 1
  end
  self.drawn, self.spent, self.n_copies = passes > 0, ms + T[k + 1], copies
  self.dull = k == 0 and self.dull + 1 or 0
  if self.dull >= DULL and self.page > NOTED * T[1] then self.nap = min(self.dull // DULL, NAP) end
end

function Rate:observe(tree, out)
  self.tokens = 0.98 * self.tokens + out.committed
  self.ms = 0.98 * self.ms + self.spent
  self.reach = 0.9 * self.reach
  if out.accepted > self.reach then self.reach = out.accepted end
  for i = 1, self.n_copies do
    local v = self.copies[i]
    local accepted, kind = tree:accepted(v), self.kind[v]
    if accepted ~= nil then -- its parent was accepted
      self.seen[kind] = self.seen[kind] + 1
      if accepted then self.right[kind] = self.right[kind] + 1 end
    end
  end
  if self.drawn then self.sharpen:observe(tree, out) end
end

return Rate
