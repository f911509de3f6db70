-- policy.forced(seq): a source of guesses (policy.sources) where a grammar holds the text: the tokens of text that it
-- forces, and behind that, where it leaves a choice, as of white space, the token that came last after the same token.
-- Kinds are a token behind which more is forced, the last one, which may be spelled together with others, and tokens
-- that came after theirs so many times in turn.
local min, setmetatable = math.min, setmetatable

local INSIDE, LAST, AGAIN, TIMES = 1, 2, 2, 4 -- kinds; AGAIN + 1..TIMES

local Forced = { tag = "forced", estimates = { 0.9, 0.7, 0.3, 0.5, 0.7, 0.8 } }
Forced.__index = Forced

function Forced:find(seq)
  local after, times, length = self.after, self.times, seq:length()
  local before = seq:token(self.length)
  for i = self.length + 1, length do
    local token = seq:token(i)
    times[before] = after[before] == token and min(times[before] + 1, TIMES) or 1
    after[before], before = token, token
  end
  self.length = length
end

function Forced:follow(tree, u)
  local token, left = tree:forced(u)
  if token then return token, left > 0 and INSIDE or LAST end
  local before = tree:token(u)
  token = self.after[before]
  return token, token and AGAIN + self.times[before]
end

return function(seq) return setmetatable({ after = {}, times = {}, length = seq:length() }, Forced) end
