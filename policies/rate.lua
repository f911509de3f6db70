-- rate: no thresholds to tune. It maximizes tokens per millisecond by Dinkelbach's rule for fractional programs (1967):
-- with R the rate reached so far, a thing is worth doing iff the tokens it is expected to add are at least R times the
-- time it costs. Times come from the calibrated tables (T: a target pass, D: a draft pass), so that runs repeat.
--
-- Guesses have two sources. Those of the draft model, if there is one, cost a pass for each level. The text itself
-- costs nothing: where its last tokens stood before, what followed them may follow again (a copy). alpha(v), the
-- estimated probability that v is accepted, is alpha of its parent times q(v): under the draft model, sharpened by what
-- came true so far; of a copy, how many of those after as many equal tokens were right. Where both were asked they
-- share: a copy that is also the draft model's likeliest is of another kind than one that is not, and other tokens get
-- what the copy leaves.
local policy = require "dt.policy"
local exp, log, min, max, huge = math.exp, math.log, math.min, math.max, math.huge

local Rate = policy.define {
  name = "rate",
  doc  = "guesses what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true, draft = "optional" },
}

local WIDEST = 6             -- drafted children per node
local MOST, AHEAD = 64, 2    -- nodes of a tree; rows that the price of one more is averaged over: times are uneven
local STEP = 0.02            -- ms of a level beside its pass, for each sequence: this page, and what is in no cache
local DOUBT = 2              -- copies that what was seen of such is held against
local PARTS = 64             -- of the index of the text: a table of the box has no more than 16,384 keys
local FOUND, LONGEST = 3, 16 -- equal tokens before a copy: looked for at most; from where on they count as that many
local AGREES, DIFFERS = 16, 32 -- added to a copy's equal tokens: the draft model's likeliest is the same, another
local NEAR = 4               -- levels that are drafted at first; more, the more were accepted of late
local START = 3              -- tokens per target pass taken to be reached at first, lest first trees are lavish
local GROWTH = 0.8           -- tokens that a level is expected to add, per token of the level before, at first

function Rate:init(seq)
  self.right, self.seen = {}, {} -- [kind]: of copies
  for equal = 1, LONGEST do
    local q = equal / (equal + 2)
    for more, chance in pairs { [0] = q, [AGREES] = (1 + q) / 2, [DIFFERS] = q / 2 } do
      self.right[equal + more], self.seen[equal + more] = DOUBT * chance, DOUBT
    end
  end
  self.sharpen = policy.sharpen()
  self.alpha, self.kind = { [0] = 1 }, {}                  -- [node]: alpha; the kind of a copy
  self.copies = {}                                         -- nodes
  self.level, self.next = {}, {}                           -- nodes; the copy goes on from the last
  self.text, self.ends = {}, {} -- the text, then the tree's copy; where `least` to FOUND tokens ended last
  for part = 0, PARTS - 1 do self.ends[part] = {} end
  self.T, self.D, self.row = {}, {}, {}
  self.least = seq.drafts and FOUND or 1 -- equal tokens: a draft model knows better than a copy after fewer
  self:read(seq, 1)
  self:price(seq)
  self.tokens, self.ms = START, self.T[1]
  self.growth, self.reach = GROWTH, 0 -- reach: the most nodes accepted of late
end

-- Reads the text from a token on. Then `at` is where its last `equal` tokens stood before, or nil.
function Rate:read(seq, first)
  local text, least, at, equal = self.text, self.least, self.at, self.equal
  for i = first, seq:length() do
    local token = seq:token(i)
    local ends, key = self.ends[token % PARTS], token
    if at and text[at + 1] == token then at, equal = at + 1, equal + 1 else at, equal = nil, 0 end
    for n = 1, FOUND do
      if n >= least then
        if n > equal and ends[key] then at, equal = ends[key], n end
        ends[key] = i
      end
      key = key | ((text[i - n] or -1) + 1) << 21 * n
    end
    text[i] = token
  end
  self.at, self.equal = at, equal
end

-- Costs at the context of now, which change every 128 tokens.
function Rate:price(seq)
  local context, T, D = seq:length(), self.T, self.D
  self.until_length = (context + 127) // 128 * 128
  for n = 1, MOST + 1 + AHEAD do
    T[n] = self.costs:target(n, context)
    D[n] = seq.drafts and self.costs:draft(n, context) + STEP * self.costs:sequences() or huge
  end
  for n = 0, MOST do self.row[n] = (T[n + 1 + AHEAD] - T[n + 1]) / AHEAD end -- of the row after n nodes
end

-- The copy after a node, of the kind that it is now that the draft model was asked: the kind, its q, and what that
-- leaves to the other tokens, of what the draft model gives them.
function Rate:compare(tree, tip, copied, kind)
  local rank = tree:rank(tip, copied) or 0
  local logp = rank > 0 and select(2, tree:candidate(tip, rank)) or -huge
  kind = kind + (rank == 1 and AGREES or DIFFERS)
  local q = self.right[kind] / self.seen[kind]
  return kind, q, min(1, (1 - q) / (1 - exp(logp)))
end

-- Adds the children of u that are worth their row, of those that the draft model has; `copied` is none of them. alpha
-- is that of u, or what a copy leaves of it. Now there are n nodes; those worth a draft pass follow in next.
function Rate:branch(tree, u, alpha, copied, R, n, deeper)
  local of, row, next, least = self.alpha, self.row, self.next, R * self.D[1]
  for rank = 1, WIDEST do
    local t, logp = tree:candidate(u, rank)
    if t ~= copied then
      local value = t and alpha * exp(logp) or 0
      if n == MOST or value < R * row[n] then break end
      local v = tree:add(u, t, log(value / of[u]))
      n, of[v] = n + 1, value
      if value >= least then
        deeper = deeper + 1
        next[deeper] = v
      end
    end
  end
  return n, deeper
end

function Rate:draft(tree)
  local length = tree.seq:length()
  if length > self.until_length then self:price(tree.seq) end
  local D, row, R, alpha = self.D, self.row, self.tokens / self.ms, self.alpha
  local n, width, sum, ms, at, equal, copies = 0, 1, 1, 0, self.at, self.equal, 0
  local far = NEAR + 2 * self.reach -- errors of probabilities multiply with the depth, and nothing may be learned yet
  self.level[1] = tree.root
  while width > 0 and n < MOST and tree:depth_room() > 0 do
    local level, next, copied = self.level, self.next, at and self.text[at + 1]
    local tip, kind, q, left = level[width], copied and min(equal, LONGEST), 0, 1
    if copied then q = self.right[kind] / self.seen[kind] end
    local open = sum - alpha[tip] * q -- what the copy leaves to the draft model
    local draws = tree:depth(tip) < far and self.growth * open - R * row[n] * width >= R * D[width]
    if not draws and not copied then break end
    if draws then
      if ms == 0 then self.sharpen:apply(tree) end
      tree:draft_step(level, width)
      ms = ms + D[width]
      if copied then kind, q, left = self:compare(tree, tip, copied, kind) end
    end
    local copy, value, deeper, total = nil, alpha[tip] * q, 0, 0
    if copied and value >= R * row[n] then
      copy = tree:add(tip, copied, log(q))
      n, copies = n + 1, copies + 1
      alpha[copy], self.kind[copy], self.copies[copies] = value, kind, copy
    end
    if draws then
      local before = n
      for i = 1, width do
        local u, is_tip = level[i], copied and i == width
        n, deeper = self:branch(tree, u, is_tip and alpha[u] * left or alpha[u], is_tip and copied, R, n, deeper)
      end
      for v = before + 1, n do total = total + alpha[v] end
      self.growth = self.growth + 0.05 * (total / open - self.growth)
      total = 0
      for i = 1, deeper do total = total + alpha[next[i]] end
    end
    if copy then
      deeper, total, at, equal = deeper + 1, total + value, at + 1, equal + 1
      next[deeper], self.text[length + tree:depth(copy)] = copy, copied
    else
      at = nil
    end
    self.level, self.next, width, sum = next, level, deeper, total
  end
  if ms == 0 then self.growth = self.growth + 0.0005 * (GROWTH - self.growth) end -- who asks nothing learns nothing
  self.drawn, self.spent, self.n_copies = ms > 0, ms + self.T[n + 1], copies
end

function Rate:observe(tree, out)
  self.tokens = 0.98 * self.tokens + out.committed
  self.ms = 0.98 * self.ms + self.spent
  self.reach = max(0.9 * self.reach, out.accepted)
  for i = 1, self.n_copies do
    local v = self.copies[i]
    local accepted, kind = tree:accepted(v), self.kind[v]
    if accepted ~= nil then -- its parent was accepted
      self.seen[kind] = self.seen[kind] + 1
      if accepted then self.right[kind] = self.right[kind] + 1 end
    end
  end
  if self.drawn then self.sharpen:observe(tree, out) end
  self:read(tree.seq, tree.seq:length() - out.committed + 1)
end

return Rate
