-- policy.pace(prices): the tokens per millisecond that a text has reached so far. Late iterations count more. It is at
-- least plain decoding's, which is always to be had.
--
--   p:begin(scale, paused) -> R   an iteration begins, after so many plain ones; what took a millisecond takes `scale`
--                            now (policy.prices, follow)
--   p:observe(tokens, ms)    it ends
local max, setmetatable = math.max, setmetatable

local START = 3   -- tokens per target pass taken to be reached at first, lest first trees are lavish
local KEEP = 0.98 -- of what is known, in each iteration

local Pace = {}
Pace.__index = Pace

function Pace:begin(scale, paused)
  local plain, kept = self.prices.plain, KEEP ^ paused
  local new = (1 - kept) / (1 - KEEP) -- tokens, and plain passes
  self.tokens, self.ms = kept * self.tokens + new, kept * scale * self.ms + new * plain
  return max(self.tokens / self.ms, 1 / plain)
end

function Pace:observe(tokens, ms) self.tokens, self.ms = KEEP * self.tokens + tokens, KEEP * self.ms + ms end

return function(prices) return setmetatable({ prices = prices, tokens = START, ms = prices.verify[1] }, Pace) end
