-- Policies on some prompts with one pair, alternately: their speeds, where the time of an iteration goes, whether they
-- give the tokens of `ar`, and how much memory the pair takes.
-- dtrun run tests/bench/policies.lua [-m DIR -md DIR --backend NAME] [--prompts 10] [-n 500] [--policies "linear rate"]
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  costs = "table",
  doc = "speeds of some policies with one pair, and a check that their tokens are the same",
  options = {
    { "prompts", 10, min = 1, max = 40, doc = "prompts, taken from both folders alternately" },
    { "tokens", 500, short = "n", min = 2, max = 1500, doc = "tokens generated per prompt" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "policies", "linear fixed_tree dynatree", doc = "policies, in addition to ar" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local POLICIES = { "ar" }
for name in opts.policies:gmatch "%S+" do table.insert(POLICIES, name) end
local PARTS = { "draft", "verify", "commit", "policy", "other" }

local pair = dt.check(dt.load(opts.load))
local speed, iterations, time, tokens, wrong, last = {}, {}, {}, 0, 0, nil
for _, name in ipairs(POLICIES) do
  speed[name], iterations[name], time[name] = {}, 0, {}
  for _, part in ipairs(PARTS) do time[name][part] = 0 end
end

for p = 0, opts.prompts do -- the first prompt is run twice, first to warm up
  local i = math.max(p, 1)
  local path = ("%s../../scripts/prompts/%s/%02d.txt"):format(HERE, i % 2 == 1 and "wikitext2" or "novels",
    (i + 1) // 2)
  local file = assert(io.open(path, "rb"))
  local prefix = dt.check(pair:prefix(file:read "a"))
  file:close()
  local hash
  for _, name in ipairs(POLICIES) do
    pair:forget()
    last = dt.check(pair:generate { policy = name, prompt = prefix, tokens = opts.tokens, ignore_eos = true,
                                    temp = opts.temp, seed = i })
    hash = hash or last.stats.output_hash
    if last.stats.output_hash ~= hash then
      wrong = wrong + 1
      print(("WRONG: %s, prompt %d: tokens %s, ar's are %s"):format(name, i, last.stats.output_hash, hash))
    end
    if p > 0 then
      table.insert(speed[name], last.stats.tokens_per_second)
      iterations[name] = iterations[name] + last.stats.iterations
      for _, part in ipairs(PARTS) do time[name][part] = time[name][part] + last.stats.time_ms[part] end
    end
  end
  if p > 0 then tokens = tokens + #last.tokens end
end

print(("%s with %s on %s: %d prompts, %d tokens, temp %g"):format(last.target, last.draft, last.backend, opts.prompts,
  opts.tokens, opts.temp))
print("  policy       tokens/s (mean)  of ar (median)  tokens/iteration  ms/iteration: " .. table.concat(PARTS, " "))
for _, name in ipairs(POLICIES) do
  local ratio = {}
  for i, x in ipairs(speed[name]) do ratio[i] = x / speed.ar[i] end
  table.sort(ratio)
  local split = {}
  for i, part in ipairs(PARTS) do split[i] = ("%6.3f"):format(time[name][part] / iterations[name]) end
  print(("  %-12s %15.1f  %13.2fx  %16.2f  %14s"):format(name, statistics.mean(speed[name]),
    statistics.quantile(ratio, 0.5), tokens / iterations[name], table.concat(split, " ")))
end
local memory = last.stats.peak_memory_bytes
local held = memory.weights + memory.caches
print(("  memory: weights %.1f MB, caches %.1f MB; %s"):format(memory.weights / 1e6, memory.caches / 1e6,
  memory.device and ("allocated on the device %.1f MB, %.3f of that"):format(memory.device / 1e6, memory.device / held)
  or ("of the process at most %.1f MB"):format(memory.host / 1e6)))
print(("  tokens: %s"):format(wrong == 0 and "identical to ar's in every run" or ("WRONG %d times"):format(wrong)))
os.exit(wrong == 0)
