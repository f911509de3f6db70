-- policy.pace(pass_costs): the pace R, in tokens per millisecond, that the text has reached so far. It is the worth of
-- a millisecond: a step that is expected to add less than R tokens per millisecond would slow the text down.
--
--   R = max(weighted tokens / weighted ms, 1 / ms of plain decoding)
--
-- Recent iterations have more weight: an iteration n iterations ago counts 0.98 ^ n. R is never below plain decoding's
-- pace, which is always available.
--
--   p:begin(scale, paused) -> R   begins an iteration, after `paused` plain iterations that the host made alone.
--                            scale: the factor by which learned costs have changed (policy.pass_costs, follow)
--   p:observe(tokens, ms)    ends it: the tokens that it committed and the ms that it took
local max, setmetatable = math.max, setmetatable

local START = 3   -- the pace at first, in tokens per target pass: higher than usual, so that the first trees are small
local KEEP = 0.98 -- the weight of earlier iterations is multiplied by this in each iteration

local Pace = {}
Pace.__index = Pace

function Pace:begin(scale, paused)
  local plain, kept = self.pass_costs.plain, KEEP ^ paused
  local new = (1 - kept) / (1 - KEEP) -- the `paused` plain iterations, weighted: 1 token and 1 plain pass each
  self.tokens, self.ms = kept * self.tokens + new, kept * scale * self.ms + new * plain
  return max(self.tokens / self.ms, 1 / plain)
end

function Pace:observe(tokens, ms) self.tokens, self.ms = KEEP * self.tokens + tokens, KEEP * self.ms + ms end

return function(pass_costs)
  return setmetatable({ pass_costs = pass_costs, tokens = START, ms = pass_costs.verify[1] }, Pace)
end
