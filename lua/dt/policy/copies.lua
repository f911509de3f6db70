-- policy.copies([corpus]): a source of guesses (policy.sources). Where the text's last tokens stood before, in the
-- text itself or, if there is a corpus (self.corpus), elsewhere, the tokens that followed them may follow again. A kind
-- is a number of equal tokens.
local min, setmetatable = math.min, setmetatable

local LONGEST = 16 -- equal tokens that are told apart; more count as so many

local Copies = { estimates = {} }
Copies.__index = Copies
for equal = 1, LONGEST do Copies.estimates[equal] = equal / (equal + 2) end -- of e + 2 so many are right

-- The place where the last tokens stand, and their number.
function Copies:place(seq)
  local corpus = self.corpus
  if not corpus then return seq:match(LONGEST) end
  local equal = corpus:longest(seq, "rest", LONGEST)
  return equal > 0 and corpus:places(seq, "rest", equal, 1)[1] or nil, equal
end

function Copies:find(seq)
  local at, equal = self:place(seq)
  self.at, self.equal = at, equal
  self.seq, self.length, self.n = seq, seq:length(), 0
end

function Copies:token(at)
  if self.corpus then return self.corpus:token(self.seq, at) end
  return at <= self.length and self.seq:token(at) or self.said[at - self.length]
end

function Copies:follow(tree, u)
  local said, n = self.said, self.n
  if n > 0 and tree:token(u) ~= said[n] then self.at = nil end -- another source's token was taken
  if not self.at then return nil end
  local at = self.at + 1
  local token = self:token(at)
  self.at, self.n, said[n + 1] = token and at, n + 1, token
  return token, min(self.equal + n, LONGEST)
end

return function(corpus)
  return setmetatable({ corpus = corpus, tag = corpus and "corpus" or "copy", said = {}, needs = not corpus }, Copies)
end
