-- Is speculation worth it here? Alternates plain decoding, chains and DynaTree over the prompts, and says where the
-- time of an iteration goes.  dtrun run tests/bench/alive.lua [--prompts 40] [--tokens 300] [--out FILE.jsonl]
--
-- Every arm runs a prompt before the next prompt comes, in an order that rotates, so that a slow minute of the machine
-- falls on all of them. Speeds count the prompt pass, as tokens_per_second does.
local dt = require "dt"

local opts = dt.args {
  costs = "table",
  doc = "alternates plain decoding, chains and DynaTree, and says where the time goes",
  options = {
    { "prompts", 40, min = 1, max = 40, doc = "prompts, taken in turn from both folders" },
    { "tokens", 300, short = "n", min = 2, max = 1000, doc = "tokens generated from each" },
    { "repeats", 1, min = 1, max = 100, doc = "runs of each arm and prompt; the fastest counts" },
    { "out", nil, type = "string", doc = "a file to append a line of JSON per run to" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"

local ARMS = {
  { label = "ar", policy = "ar" },
  { label = "linear K=3", policy = "linear", params = { K = 3 } },
  { label = "linear K=4", policy = "linear", params = { K = 4 } },
  { label = "linear K=5", policy = "linear", params = { K = 5 } },
  { label = "dynatree", policy = "dynatree" },
  { label = "  narrow", policy = "dynatree", preset = "narrow" },
}
local PARTS = { "draft", "verify", "commit", "policy", "other" }

local function prompt_text(i)
  local folder = i % 2 == 1 and "wikitext2" or "novels"
  local name = ("%s/%02d"):format(folder, (i + 1) // 2)
  local file = assert(io.open(("%s../../scripts/prompts/%s.txt"):format(HERE, name), "rb"))
  local text = file:read "a"
  file:close()
  return text, name
end

local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local middle = #sorted // 2
  return #sorted % 2 == 1 and sorted[middle + 1] or (sorted[middle] + sorted[middle + 1]) / 2
end

local pair = assert(dt.load(opts.load))

local function run(arm, text, name)
  local best
  for _ = 1, opts.repeats do
    pair:forget()
    local result = assert(pair:generate {
      policy = arm.policy, preset = arm.preset, params = arm.params,
      prompt = text, tokens = opts.tokens, ignore_eos = true,
    })
    if not best or result.stats.tokens_per_second > best.stats.tokens_per_second then best = result end
  end
  if opts.out then
    dt.append(opts.out, dt.json.encode { arm = arm.label, prompt = name, backend = best.backend, threads = best.threads,
      tokens = #best.tokens, stats = best.stats })
  end
  return best
end

for _, arm in ipairs(ARMS) do
  arm.speed, arm.ratio, arm.time, arm.iterations, arm.tokens = {}, {}, {}, 0, 0
  for _, part in ipairs(PARTS) do arm.time[part] = 0 end
  run(arm, (prompt_text(1)), "warm-up")
end

for p = 1, opts.prompts do
  local text, name = prompt_text(p)
  local results = {}
  for i = 1, #ARMS do
    local k = (i + p) % #ARMS + 1
    results[k] = run(ARMS[k], text, name)
  end
  for k, arm in ipairs(ARMS) do
    local stats = results[k].stats
    assert(stats.output_hash == results[1].stats.output_hash, arm.label .. " changed the output of " .. name)
    arm.speed[p] = stats.tokens_per_second
    arm.ratio[p] = stats.tokens_per_second / results[1].stats.tokens_per_second
    arm.iterations, arm.tokens = arm.iterations + stats.iterations, arm.tokens + #results[k].tokens
    for _, part in ipairs(PARTS) do arm.time[part] = arm.time[part] + stats.time_ms[part] end
  end
end

local plain = median(ARMS[1].speed)
print(("%d prompts, %d tokens, %s, %d threads; outputs equal"):format(
  opts.prompts, opts.tokens, pair.backend, pair.threads))
print("arm         tokens/s  of medians  median ratio  tokens/iteration  ms/iteration: "
  .. table.concat(PARTS, " "))
for _, arm in ipairs(ARMS) do
  local split = {}
  for i, part in ipairs(PARTS) do split[i] = ("%6.3f"):format(arm.time[part] / arm.iterations) end
  print(("%-11s %8.1f %10.3fx %12.3fx %17.3f %20s"):format(arm.label, median(arm.speed), median(arm.speed) / plain,
    median(arm.ratio), arm.tokens / arm.iterations, table.concat(split, " ")))
end
