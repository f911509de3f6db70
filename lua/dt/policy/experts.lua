-- policy.experts(costs): how many distinct experts a pass of the target is expected to read, of all layers: before the
-- pass nobody knows them. It is those of one row times a power of the rows, 0 if all rows share theirs and 1 if no two
-- rows share any; the power is learned from the passes of late. Where the target has no experts, and before a pass over
-- several rows, it is nil, with which self.costs counts as usual.
--
--   e:expected(rows[, sequences]) -> number   rows of each of so many sequences; without, costs:sequences()
--   e:observe(rows, out[, sequences])         such a pass is over, of which `out` tells
--   e.revision               (an integer) changes when the power has changed by more than a little
local abs, ipairs, log, max, setmetatable = math.abs, ipairs, math.log, math.max, setmetatable

local LATE = 0.05   -- part of the power that a pass decides; the first ones more
local LITTLE = 0.02 -- of the power: 3 % of the experts of four rows

local Experts = {}
Experts.__index = Experts

function Experts:expected(rows, sequences)
  return self.power and self.one * (rows * (sequences or self.costs:sequences())) ^ self.power
end

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
