-- Prints the runs of an experiment file without times, sorted: dtrun run tests/cli/runs.lua FILE.jsonl
local dt = require "dt"
local record = require "dt.record"

local lines = {}
for i, run in ipairs(dt.check(record.read(arg[1])).runs) do
  lines[i] = ("%s|%s|%d|%d|%s|%d"):format(run.arm, run.prompt, run.tokens, run["repeat"], run.stats.output_hash,
                                         run.stats.drafted)
end
table.sort(lines)
print(table.concat(lines, "\n"))
