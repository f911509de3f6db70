-- What penalties and log-probabilities cost: plain decoding with and without them, alternating, and the time of its
-- passes. With --other it also runs plain decoding with neither on this build and on another one, alternating, each in
-- a process of its own.
-- dtrun run tests/bench/adjustments.lua [--rounds 9] [-n 100] [--other DTRUN] [-m MODEL]
local dt = require "dt"

local opts = dt.args {
  doc = "compares the time of passes with penalties, with log-probabilities, and with neither",
  options = {
    { "rounds", 9, min = 3, max = 99, doc = "runs of each, alternating" },
    { "tokens", 100, short = "n", min = 2, max = 1000, doc = "tokens of a run" },
    { "other", nil, type = "string", doc = "another build of dtrun to compare with, with neither" },
  },
}
local PROMPT = "It was a dark night, and the old man went down to the harbour to look for the ship."
local ARMS = {
  { name = "nothing" },
  { name = "penalties", repeat_penalty = 1.1, presence_penalty = 0.2, frequency_penalty = 0.1 },
  { name = "log-probabilities", logprobs = 5 },
}

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function ms(result) return result.stats.time_ms.verify / result.stats.iterations end

local times, ratios = {}, {}
for i in ipairs(ARMS) do times[i], ratios[i] = {}, {} end
opts.load.draft = false
local pair = dt.check(dt.load(opts.load))
for round = 0, opts.rounds do -- the first round warms up and does not count
  local now = {}
  for k = 1, #ARMS do
    local i = (round + k) % #ARMS + 1
    local asked = { policy = "ar", prompt = PROMPT, tokens = opts.tokens, ignore_eos = true }
    for key, value in pairs(ARMS[i]) do asked[key] = key ~= "name" and value or nil end
    now[i] = ms(assert(pair:generate(asked)))
  end
  for i in ipairs(ARMS) do
    if round > 0 then times[i][round], ratios[i][round] = now[i], now[i] / now[1] end
  end
end
pair:close()
print "asked,pass_ms,ratio"
for i, arm in ipairs(ARMS) do print(("%s,%.4f,%.4f"):format(arm.name, median(times[i]), median(ratios[i]))) end

local function run_of(dtrun)
  local command = "%s ar -m '%s' -md none -p '%s' -n %d --ignore-eos --json - -q 2>/dev/null"
  local process = assert(io.popen(command:format(dtrun, opts.load.target or "", PROMPT, opts.tokens)))
  local result = assert(dt.json.decode(process:read "a"))
  process:close()
  return ms(result)
end

if opts.other then
  local mine, other, ratio = {}, {}, {}
  for round = 1, opts.rounds do
    if round % 2 == 1 then mine[round] = run_of "/proc/$PPID/exe" end
    other[round] = run_of(opts.other)
    if round % 2 == 0 then mine[round] = run_of "/proc/$PPID/exe" end
    ratio[round] = mine[round] / other[round]
  end
  print(("neither, compared with the other build: %.4f ms and %.4f ms, ratio %.4f"):format(median(mine), median(other),
    median(ratio)))
end
