-- What a pass of a draft head costs beside its target's pass over one row: from a table of costs that is measured anew,
-- where both take turns over all sizes and of each the median counts (lua/measure/calibrate.c).
--   dtrun run tests/bench/head_pass.lua -m TARGET -md HEAD [--draft-weights q8]
local dt = require "dt"

local opts = dt.args { doc = "the passes of a draft head in percent of the target's pass over one row" }
local ROWS = { 1, 4, 8, 16 }

local pair = dt.check(dt.load(opts.load))
dt.check(pair.draft_head, "head_pass: the draft is no draft head")
local _, costs = assert(dt.calibrate(pair, { fresh = true }))
print(("%s (%s) with %s (%s) on %s, %d threads"):format(pair.target.path, pair.target_dtype, pair.draft.path,
  pair.draft_dtype, pair.backend, pair.threads))
print "context  target, 1 row   head's rows: ms, of the target's pass"
for k, context in ipairs(costs.contexts) do
  local one, cells = costs.target[k][1], {}
  for _, rows in ipairs(ROWS) do
    for i, n in ipairs(costs.rows) do
      if n == rows then
        local ms = costs.draft[k][i]
        cells[#cells + 1] = ("%d: %.3f, %.1f %%"):format(rows, ms, 100 * ms / one)
      end
    end
  end
  print(("%7d  %10.3f ms   %s"):format(context, one, table.concat(cells, "   ")))
end
