-- Prints the lines of an experiment file without times and sizes of memory: dtrun run tests/cli/untimed.lua FILE.jsonl
local dt = require "dt"
local record = require "dt.record"

local TIMED = { "tokens_per_second", "load_ms", "ttft_ms", "tpot_ms", "time_ms", "peak_memory_bytes" }

local file = dt.check(record.read(arg[1]))
file.head.began = nil
print(dt.json.encode(file.head))
for _, run in ipairs(file.runs) do
  for _, key in ipairs(TIMED) do run.stats[key] = nil end
  run.tries, run.disturbed = nil, nil
  print(dt.json.encode(run))
end
