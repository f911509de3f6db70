-- What a sweep costs beside decoding: the time of a whole process (loading the pair, the prompt pass, warm-up runs,
-- opening policies, writing results) over the sum of what its runs report without the prompt pass. 100 settings of
-- linear and dynatree, and plain decoding, over one prompt of 800 characters.
--   dtrun run tests/bench/sweep_cost.lua [--tokens 128,300] [--repeats 5]
local dt = require "dt"
local record = require "dt.record"
local shell = require "dt.shell"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "the time of a sweep of 100 settings over the sum of its decoding times",
  options = {
    { "tokens", "128,300", short = "n", doc = "new tokens; several lengths: 100,300" },
    { "repeats", 5, min = 1, doc = "sweeps of each length" },
  },
}

local PROMPT = (arg[0]:match "^(.*/)" or "./") .. "../../scripts/prompts/novels/01.txt"
local SWEEP = 'exec "$(readlink /proc/$PPID/exe)" run sweep linear dynatree --set K=1..25 D0=1..5 B_mid=1..5 ' ..
  "B_max=5..7 --prompt %s --chars 800 --best 0 --tokens %s --out %s"

local function decoding_ms(runs)
  local sum = 0
  for _, run in ipairs(runs) do
    for part, ms in pairs(run.stats.time_ms) do sum = sum + (part == "prompt" and 0 or ms) end
  end
  return sum
end

-- One sweep in a process of its own: its time, and that of its runs.
local function sweep(tokens)
  local out = os.tmpname()
  os.remove(out)
  local start = dt.clock()
  local status, output = shell(SWEEP, PROMPT, tokens, out)
  local ms = dt.clock() - start
  assert(status == 0, output)
  local file = assert(record.read(out))
  os.remove(out)
  return ms, decoding_ms(file.runs), #file.runs
end

for tokens in opts.tokens:gmatch "[^,]+" do
  local ratios = {}
  for i = 1, opts.repeats do
    local ms, decoding, runs = sweep(tokens)
    ratios[i] = ms / decoding
    print(("%s tokens: %.0f ms, of which %d runs decode %.0f ms: %.3fx"):format(tokens, ms, runs, decoding, ratios[i]))
  end
  table.sort(ratios)
  print(("%s tokens: median %.3fx"):format(tokens, statistics.quantile(ratios, 0.5)))
end
