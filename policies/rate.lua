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
local exp, log, min, huge = math.exp, math.log, math.min, math.huge

local Rate = policy.define {
  name = "rate",
  doc  = "guesses what adds more tokens per millisecond than were reached so far; nothing to tune",
  uses = { costs = true, draft = "optional" },
}

local WIDEST = 6             -- drafted children per node
local MOST, AHEAD = 64, 2    -- nodes of a tree; rows that the price of one more is averaged over: times are uneven
local DOUBT = 2              -- copies that what was seen of such is held against
local PARTS = 64             -- of the index of the text: a table of the box has no more than 16,384 keys
local FOUND, LONGEST = 3, 16 -- equal tokens before a copy: looked for at most; from where on they count as that many
local AGREES, DIFFERS = 16, 32 -- added to a copy's equal tokens: the draft model's likeliest is the same, another
local START = 3              -- tokens per target pass taken to be reached at first, lest first trees are lavish

function Rate:init(seq)
  self.right, self.seen = {}, {} -- [kind]: of copies
  for equal = 1, LONGEST do
    local q = equal / (equal + 2)
    for more, chance in pairs { [0] = q, [AGREES] = (1 + q) / 2, [DIFFERS] = q / 2 } do
      self.right[equal + more], self.seen[equal + more] = DOUBT * chance, DOUBT
    end
  end
  self.sharpen = policy.sharpen()
  self.alpha, self.kind = { [0] = 1 }, {}                    -- [node]: alpha; the kind of a copy
  self.copies = {}                                         -- nodes
  self.level, self.next = {}, {}                            -- nodes; the copy goes on from level[0]
  self.token, self.q, self.value, self.rank = {}, {}, {}, {} -- of the best child left of level[i]
  self.text, self.ends = {}, {} -- the text, then the tree's copy; where 1 to FOUND tokens ended last
  for part = 0, PARTS - 1 do self.ends[part] = {} end
  self.T, self.D, self.row = {}, {}, {}
  self.least = seq.drafts and FOUND or 1 -- equal tokens: a draft model knows better than a copy after fewer
  self:read(seq, 1)
  self:price(seq)
  self.tokens, self.ms = START, self.T[1]
  self.growth = 0.8 -- tokens that a level is expected to add, per token of the level before
end

-- Reads the text from a token on. Then `at` is where its last `equal` tokens stood before, or nil.
function Rate:read(seq, first)
  local text, at, equal = self.text, self.at, self.equal
  for i = first, seq:length() do
    local token = seq:token(i)
    local ends, key = self.ends[token % PARTS], token
    if at and text[at + 1] == token then at, equal = at + 1, equal + 1 else at, equal = nil, 0 end
    for n = 1, FOUND do
      if n > equal and n >= self.least and ends[key] then at, equal = ends[key], n end
      ends[key] = i
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
    T[n], D[n] = self.costs:target(n, context), seq.drafts and self.costs:draft(n, context) or huge
  end
  for n = 0, MOST do self.row[n] = (T[n + 1 + AHEAD] - T[n + 1]) / AHEAD end -- of the row after n nodes
end

-- A child of level[i]; none: t is nil.
local function offer(self, i, t, q)
  self.token[i], self.q[i] = t, q
  self.value[i] = t and self.alpha[self.level[i]] * q or 0
end

-- The next child that the draft model has for level[i], the copy left out.
local function offer_drafted(self, tree, i, rank)
  local u, t, logp = self.level[i], nil, nil
  local copied = u == self.level[0] and self.copied
  if rank <= WIDEST then t, logp = tree:candidate(u, rank) end
  if t and t == copied then
    rank = rank + 1
    t, logp = tree:candidate(u, rank)
  end
  self.rank[i] = rank
  offer(self, i, t, t and exp(logp) * (copied and self.left or 1))
end

-- The copy again, of the kind that it is now that the draft model was asked; that kind.
local function compare(self, tree, copied, kind)
  local tip = self.level[0]
  local rank = tree:rank(tip, copied) or 0
  local logp = rank > 0 and select(2, tree:candidate(tip, rank)) or -math.huge
  kind = kind + (rank == 1 and AGREES or DIFFERS)
  offer(self, 0, copied, self.right[kind] / self.seen[kind])
  self.left = min(1, (1 - self.q[0]) / (1 - exp(logp))) -- to the other tokens, of what the draft model gives them
  return kind
end

function Rate:draft(tree)
  local length = tree.seq:length()
  if length > self.until_length then self:price(tree.seq) end
  local D, row, R, alpha, value = self.D, self.row, self.tokens / self.ms, self.alpha, self.value
  local n, width, sum, ms, at, equal, copies = 0, 1, 1, 0, self.at, self.equal, 0
  self.sharpen:apply(tree)
  self.level[0], self.level[1] = tree.root, tree.root
  while width > 0 and tree:depth_room() > 0 and n < MOST do
    local level, next, copied = self.level, self.next, at and self.text[at + 1]
    local kind = copied and min(equal, LONGEST)
    offer(self, 0, copied, copied and self.right[kind] / self.seen[kind])
    local open = sum - value[0] -- what the copy leaves to the draft model
    local draws = self.growth * open - R * row[n] * width >= R * D[width]
    if draws then
      tree:draft_step(level, width)
      ms = ms + D[width]
      self.copied = copied
      if copied then kind = compare(self, tree, copied, kind) end
      for i = 1, width do offer_drafted(self, tree, i, 1) end
    end
    local deeper, total, drafted = 0, 0, 0
    next[0] = nil
    while n < MOST do -- the best child that is left, of all nodes of the level
      local best, most = nil, R * row[n]
      for i = 0, draws and width or 0 do
        if value[i] >= most then best, most = i, value[i] end
      end
      if not best then break end
      local u, t = level[best], self.token[best]
      local v = tree:add(u, t, log(self.q[best]))
      n, alpha[v] = v, most
      if best > 0 then
        drafted = drafted + most
      else
        copies, next[0] = copies + 1, v
        self.copies[copies], self.kind[v] = v, kind
      end
      if best == 0 or most >= R * D[1] then
        deeper, total = deeper + 1, total + most
        next[deeper] = v
      end
      if best > 0 then offer_drafted(self, tree, best, self.rank[best] + 1) else value[0] = 0 end
    end
    if draws then self.growth = self.growth + 0.05 * (drafted / open - self.growth) end
    self.level, self.next, width, sum = next, level, deeper, total
    at, equal = next[0] and at + 1, equal + 1
    if at then self.text[length + tree:depth(next[0])] = copied end
  end
  self.spent, self.n_copies = ms + self.T[n + 1], copies
end

function Rate:observe(tree, out)
  self.tokens = 0.98 * self.tokens + out.committed
  self.ms = 0.98 * self.ms + self.spent
  for i = 1, self.n_copies do
    local v = self.copies[i]
    local accepted, kind = tree:accepted(v), self.kind[v]
    if accepted ~= nil then -- its parent was accepted
      self.seen[kind] = self.seen[kind] + 1
      if accepted then self.right[kind] = self.right[kind] + 1 end
    end
  end
  self.sharpen:observe(tree, out)
  self:read(tree.seq, tree.seq:length() - out.committed + 1)
end

return Rate
