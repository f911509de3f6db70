-- policy.copies(seq): guesses from the text itself, which cost no pass. Where its last tokens stood before, what
-- followed them may follow again. A copy is as likely as those of its kind came true; of a kind are copies after as
-- many equal tokens and, where the draft model was asked, those that it finds likeliest, too, or does not.
--
--   c:find(seq)              an iteration begins: looks for such a place
--   c:next(tree) -> token, q what is copied behind the root or the last copy; nil: nothing
--   c:compare(tree, u) -> q, left   of u, whose next token that is: q as it is if u was drafted from, and the share of
--                            what the draft model gives to other tokens that is left to them
--   c:add(tree, u) -> node   makes it a node, behind which copying goes on
--   c:stop()                 it is not worth a node: nothing is copied behind it
--   c:observe(tree)          learns which came true
local exp, log, min, select, setmetatable = math.exp, math.log, math.min, select, setmetatable

local LONGEST = 16 -- equal tokens that are told apart; more count as so many
local FOUND = 3    -- equal tokens with a draft model, which knows better than a copy after fewer; else 1
local DOUBT = 2    -- copies that the first estimate of a kind counts as
local ALONE, AGREES, DIFFERS = 0, LONGEST, 2 * LONGEST -- a kind is one of these plus the equal tokens

local Copies = {}
Copies.__index = Copies

-- At first copies after e equal tokens are right in e of e + 2 cases; where the draft model agrees, halfway from there
-- to 1, where it does not, half as often.
local function first_estimates(right, seen)
  for equal = 1, LONGEST do
    local q = equal / (equal + 2)
    right[ALONE + equal] = DOUBT * q
    right[AGREES + equal], right[DIFFERS + equal] = DOUBT * (1 + q) / 2, DOUBT * q / 2
  end
  for kind = 1, 3 * LONGEST do seen[kind] = DOUBT end
end

function Copies:find(seq)
  local at, equal = seq:match(LONGEST)
  self.at, self.equal = at and equal >= self.least and at or nil, equal
  self.seq, self.length, self.n = seq, seq:length(), 0
end

function Copies:next(tree)
  if not self.at then return nil end
  local at = self.at + 1
  self.at = at
  local token = at <= self.length and self.seq:token(at) or tree:token(self.node[at - self.length])
  local kind = min(self.equal, LONGEST)
  self.token, self.kind, self.q = token, kind, self.right[kind] / self.seen[kind]
  return token, self.q
end

function Copies:compare(tree, u)
  if not self.at or not tree:drafted(u) then return self.q, 1 end
  local rank = tree:rank(u, self.token) or 0
  local p = rank > 0 and exp((select(2, tree:candidate(u, rank)))) or 0
  local kind = self.kind + (rank == 1 and AGREES or DIFFERS)
  self.kind, self.q = kind, self.right[kind] / self.seen[kind]
  return self.q, min(1, (1 - self.q) / (1 - p))
end

function Copies:add(tree, u)
  local v, n = tree:add(u, self.token, log(self.q)), self.n + 1
  tree:tag(v, "copy")
  self.n, self.node[n], self.kind_of[n], self.equal = n, v, self.kind, self.equal + 1
  return v
end

function Copies:stop() self.at = nil end

function Copies:observe(tree)
  for i = 1, self.n do
    local accepted, kind = tree:accepted(self.node[i]), self.kind_of[i]
    if accepted ~= nil then -- its parent was accepted
      self.seen[kind] = self.seen[kind] + 1
      if accepted then self.right[kind] = self.right[kind] + 1 end
    end
  end
  self.n = 0
end

return function(seq)
  local c = setmetatable({ right = {}, seen = {}, node = {}, kind_of = {}, n = 0, least = seq.drafts and FOUND or 1 },
                         Copies)
  first_estimates(c.right, c.seen)
  return c
end
