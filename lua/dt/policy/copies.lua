-- policy.copies([corpus]): a source of guesses (policy.sources) that copies. It finds the longest earlier passage, in
-- the text or in a corpus (self.corpus), that equals the end of the text, and guesses the tokens that followed it.
-- The kind of a guess is the number of equal tokens before it, 1 to 16; each copied token counts as one more.
local min, setmetatable = math.min, setmetatable

local LONGEST = 16 -- more equal tokens than this count as this many

local Copies = { estimates = {} }
Copies.__index = Copies
-- First estimates: after e equal tokens a copy is right e times in e + 2. They are replaced by counts (policy.sources).
for equal = 1, LONGEST do Copies.estimates[equal] = equal / (equal + 2) end

-- Returns the position of the longest earlier passage that ends as the text does, and its number of equal tokens.
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

-- The token at a position: of the corpus, of the text, or of the copy itself where it runs past the end of the text.
function Copies:token(at)
  if self.corpus then return self.corpus:token(self.seq, at) end
  return at <= self.length and self.seq:token(at) or self.said[at - self.length]
end

function Copies:follow(tree, u)
  local said, n = self.said, self.n
  if n > 0 and tree:token(u) ~= said[n] then self.at = nil end -- node u came from another source
  if not self.at then return nil end
  local at = self.at + 1
  local token = self:token(at)
  self.at, self.n, said[n + 1] = token and at, n + 1, token
  return token, min(self.equal + n, LONGEST)
end

return function(corpus)
  return setmetatable({ corpus = corpus, tag = corpus and "corpus" or "copy", said = {}, needs = not corpus }, Copies)
end
