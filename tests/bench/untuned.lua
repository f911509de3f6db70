-- Is rate, which has nothing to tune, as fast as every other policy tuned? Runs it beside the presets `tuned` of the
-- policies named (dtrun run tune POLICY makes them) on prompts 13 to 20 of both kinds, none of which tune looks at, or
-- on other sets of prompts.
--   dtrun run tests/bench/untuned.lua [POLICY...] [--tokens 300] [--repeats 2] [--temp 0.8] [--out FILE.jsonl]
--     [--prompts scripts/prompts/tasks/*.jsonl]
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "compares rate with other policies' presets tuned, on prompts that the tuning did not see",
  rest = "POLICY",
  options = {
    { "tokens", 300, short = "n", min = 2, doc = "new tokens" },
    { "repeats", 2, min = 1, doc = "runs of each policy and prompt" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature; above 0 texts hardly repeat themselves" },
    { "prompts", many = "FILE.jsonl", doc = "sets to take instead of those prompts" },
    { "out", nil, type = "string", doc = "the file of results" },
  },
}

local files = {}
for i = 13, #opts.prompts > 0 and 0 or 20 do
  for _, set in ipairs { "novels", "wikitext2" } do
    files[#files + 1] = ("%s../../scripts/prompts/%s/%02d.txt"):format(arg[0]:match "^(.*/)" or "./", set, i)
  end
end
local arms = { { label = "rate", policy = "rate" } }
for i, policy in ipairs(opts.rest) do
  arms[i + 1] = { label = policy .. " tuned", policy = policy, preset = "tuned" }
end

local prompts = dt.check(experiment.prompts { files = files, sets = opts.prompts })
local done = dt.check(experiment.run {
  name = "untuned", pair = dt.check(dt.load(opts.load)), arms = arms, tokens = { opts.tokens },
  prompts = prompts, repeats = opts.repeats, warmup = 2,
  generate = { ignore_eos = true, temp = opts.temp }, out = opts.out,
})

-- Of an arm over another: one ratio for each prompt, the mean over its repeats.
local function ratios(label, base)
  local plain, sums, list = record.baseline(done.runs, base), {}, {}
  for _, run in ipairs(done.runs) do
    if run.arm == label then sums[run.prompt] = (sums[run.prompt] or 0) + record.speedup(run, plain(run)) end
  end
  for prompt, sum in pairs(sums) do list[#list + 1] = { prompt = prompt, ratio = sum / opts.repeats } end
  table.sort(list, function(a, b) return a.prompt < b.prompt end)
  for i, entry in ipairs(list) do list[i] = entry.ratio end
  return statistics.describe(list)
end

print(("%d prompts, %d tokens, %d repeats, %s, %d threads; outputs equal; mean [95 %% bootstrap interval over prompts]")
  :format(#prompts, opts.tokens, opts.repeats, done.head.backend, done.head.threads))
for _, arm in ipairs(arms) do
  local over, beside = ratios(arm.label, "ar"), ratios("rate", arm.label)
  print(("%-18s %.3fx plain [%.3f, %.3f]   rate is %.3fx of it [%.3f, %.3f]"):format(arm.label, over.mean, over.low,
    over.high, beside.mean, beside.low, beside.high))
end
