-- policy.pace(pass_costs): the tokens per millisecond that a text has reached so far. Late iterations count more. It is
-- at least that of plain decoding, which is always available.
--
--   p:begin(scale, paused) -> R   an iteration begins, after so many plain ones; what took a millisecond takes `scale`
--                            now (policy.pass_costs, follow)
--   p:observe(tokens, ms)    it ends
local max, setmetatable = math.max, setmetatable

local START = 3   -- tokens per target pass taken to be reached at first, lest first trees are lavish
local KEEP = 0.98 -- of what is known, in each iteration

local Pace = {}
Pace.__index = Pace

function Pace:begin(scale, paused)
  local plain, kept = self.pass_costs.plain, KEEP ^ paused
  local new = (1 - kept) / (1 - KEEP) -- tokens, and plain passes
  self.tokens, self.ms = kept * self.tokens + new, kept * scale * self.ms + new * plain
  return max(self.tokens / self.ms, 1 / plain)
end

function Pace:observe(tokens, ms) self.tokens, self.ms = KEEP * self.tokens + tokens, KEEP * self.ms + ms end

return function(pass_costs)
  return setmetatable({ pass_costs = pass_costs, tokens = START, ms = pass_costs.verify[1] }, Pace)
end
