-- policy.forced(seq): a source of guesses (policy.sources) where a grammar constrains the text. It guesses the tokens
-- of text that the grammar forces. Where the grammar leaves a choice, such as white space, it guesses the token that
-- followed the same token last time.
--
-- The kind of a guess: INSIDE, a forced token followed by more forced text; LAST, the last forced token, which the
-- target may write as one token with what follows; AGAIN + n, a token that followed the same token n times in a row.
local min, setmetatable = math.min, setmetatable

local INSIDE, LAST, AGAIN, TIMES = 1, 2, 2, 4 -- kinds are 1, 2 and AGAIN + 1 to AGAIN + TIMES

local Forced = { tag = "forced", estimates = { 0.9, 0.7, 0.3, 0.5, 0.7, 0.8 } }
Forced.__index = Forced

-- Learns from the tokens committed since: the successor of each token, and how many times it came in succession.
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
