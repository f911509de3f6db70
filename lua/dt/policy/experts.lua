-- policy.experts(costs): estimates how many distinct experts a target pass will read, in all layers together. The cost
-- of a pass depends on that number, which is known only after the pass.
--
--   experts of a pass = (experts of one row) * rows ^ power
--
-- The power is 0 if all rows select the same experts and 1 if no two rows share any. It is learned from recent passes.
-- For a target without experts, and before the first pass over several rows, the estimate is nil; self.costs then
-- assumes the usual number.
--
--   e:expected(rows[, sequences]) -> number   rows: of each sequence; sequences: by default costs:sequences()
--   e:observe(rows, out[, sequences])   after a pass over that many rows; out: the argument of the policy's observe
--   e.revision               (an integer) changes when the power has changed by more than LITTLE
local abs, ipairs, log, max, setmetatable = math.abs, ipairs, math.log, math.max, setmetatable

local LATE = 0.05   -- weight of a new pass in the average of the power; 1 / n for the first passes
local LITTLE = 0.02 -- a change of the power that matters: it changes the experts of four rows by 3 %

local Experts = {}
Experts.__index = Experts

function Experts:expected(rows, sequences)
  return self.power and self.one * (rows * (sequences or self.costs:sequences())) ^ self.power
end

-- The experts that the root selected, in all layers.
local function of_one_row(out)
  local n = 0
  for _, ids in ipairs(out:experts(0)) do n = n + #ids end
  return n
end

function Experts:observe(rows, out, sequences)
  rows = rows * (sequences or self.costs:sequences())
  if rows < 2 or out.experts_read == 0 then return end
  self.one, self.seen = self.one or of_one_row(out), self.seen + 1
  self.now = self.now + max(LATE, 1 / self.seen) * (log(out.experts_read / self.one) / log(rows) - self.now)
  if self.power and abs(self.now - self.power) <= LITTLE then return end
  self.power, self.revision = self.now, self.revision + 1
end

return function(costs) return setmetatable({ costs = costs, now = 0, seen = 0, revision = 0 }, Experts) end
