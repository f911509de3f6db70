-- Policies on chats: the tasks' prompts as questions to a pair that was trained on conversations (ChatML: Qwen,
-- SmolLM2). The tokens of every policy must be those of `ar`. Prints tokens per iteration, the speedup over plain
-- decoding after the prompt (the median over prompts of the ratios of adjacent runs), and the milliseconds of an
-- iteration, for code and for the rest.
--   dtrun run tests/bench/chats.lua -m TARGET -md DRAFT [POLICY[:PRESET|NAME=VALUE,..]...] [-n 64] [--code 10]
--     [--others 4] [--temp 0.8]
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  costs = "table",
  doc = "tokens per iteration and speed of policies on chats, compared with plain decoding",
  rest = "POLICY[:PRESET|NAME=VALUE,..]",
  options = {
    { "tokens", 64, short = "n", min = 2, max = 1000, doc = "tokens generated from each" },
    { "code", 10, min = 0, max = 10, doc = "prompts of humaneval" },
    { "others", 4, min = 0, max = 10, doc = "prompts of each of the five other sets" },
    { "system", "You are a helpful assistant.", doc = "the chats' system text" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature; chat i is sampled with seed i" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local OTHERS = { "alpaca", "gsm8k", "mt_bench", "qa", "sum" }
local PARTS = { "draft", "verify", "commit", "policy", "other" }

local function read_set(name, n, group, into)
  local file = dt.check(io.open(("%s../../scripts/prompts/tasks/%s.jsonl"):format(HERE, name), "rb"))
  for line in file:lines() do
    if n == 0 then break end
    n = n - 1
    into[#into + 1] = { group = group, text = dt.json.decode(line).prompt }
  end
  file:close()
end

local prompts, arms = {}, { { label = "ar", policy = "ar" } }
read_set("humaneval", opts.code, "code", prompts)
for _, name in ipairs(OTHERS) do read_set(name, opts.others, "others", prompts) end
local USUAL = { "linear:K=4", "fixed_tree", "dynatree", "rate", "prompt_lookup" }
for _, given in ipairs(opts.rest[1] and opts.rest or USUAL) do
  local name, values = given:match "^([^:]*):?(.*)$"
  local arm = { label = given, policy = name, params = {} }
  if values:find "^[^=]+$" then arm.preset = values end
  for key, value in values:gmatch "([%w_]+)=([^,]+)" do
    if value == "true" or value == "false" then value = value == "true" else value = tonumber(value) or value end
    arm.params[key] = value
  end
  arms[#arms + 1] = arm
end

local pair = dt.check(dt.load(opts.load))
local sums, wrong = {}, 0 -- sums: group -> arm's label -> {tokens, iterations, ratios, parts}

local function sum_of(group, label)
  sums[group] = sums[group] or {}
  sums[group][label] = sums[group][label]
    or { tokens = 0, iterations = 0, accepted = 0, drafted = 0, ratios = {}, parts = {} }
  return sums[group][label]
end

local function run(arm, prefix, tokens, seed)
  pair:forget()
  local result = dt.check(pair:generate { policy = arm.policy, params = arm.params, preset = arm.preset,
                                          prompt = prefix, tokens = tokens, temp = opts.temp, seed = seed })
  local ms = 0
  for _, part in ipairs(PARTS) do ms = ms + result.stats.time_ms[part] end
  return result, #result.tokens / ms
end

local CHAT = "<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"
for p, prompt in ipairs(prompts) do
  local prefix = dt.check(pair:prefix(CHAT:format(opts.system, prompt.text)))
  if p == 1 then
    for _, arm in ipairs(arms) do run(arm, prefix, 8, p) end -- warms up
  end
  local plain, plain_speed
  for i = 0, #arms - 1 do -- plain decoding first; the order of the others changes from prompt to prompt
    local arm = arms[i == 0 and 1 or 2 + (i + p) % (#arms - 1)]
    local result, speed = run(arm, prefix, opts.tokens, p)
    if i == 0 then plain, plain_speed = result, speed end
    if result.stats.output_hash ~= plain.stats.output_hash then
      wrong = wrong + 1
      print(("WRONG: %s, prompt %d: the tokens differ from ar's"):format(arm.label, p))
    end
    for _, group in ipairs { prompt.group, "all" } do
      local sum, stats = sum_of(group, arm.label), result.stats
      sum.tokens, sum.iterations = sum.tokens + #result.tokens, sum.iterations + stats.iterations
      sum.drafted, sum.accepted = sum.drafted + stats.drafted, sum.accepted + stats.accepted
      table.insert(sum.ratios, speed / plain_speed)
      for _, part in ipairs(PARTS) do sum.parts[part] = (sum.parts[part] or 0) + stats.time_ms[part] end
    end
  end
end

print(("%s with %s on %s, %d threads: %d chats, up to %d tokens each, temp %g"):format(pair.target.path,
  pair.draft and pair.draft.path or "no draft", pair.backend, pair.threads, #prompts, opts.tokens, opts.temp))
print("  policy                        tokens/iteration  accepted  tokens/s   of ar  ms/iteration: "
  .. table.concat(PARTS, " "))
for _, group in ipairs { "code", "others", "all" } do
  for _, arm in ipairs(sums[group] and arms or {}) do
    local s, ms, split = sums[group][arm.label], 0, {}
    for i, part in ipairs(PARTS) do ms, split[i] = ms + s.parts[part], ("%.2f"):format(s.parts[part] / s.iterations) end
    table.sort(s.ratios)
    print(("  %-6s %-30s %8.2f  %6.0f %%  %8.1f  %5.2fx  %s"):format(group, arm.label, s.tokens / s.iterations,
      100 * s.accepted / math.max(s.drafted, 1), 1000 * s.tokens / ms, statistics.quantile(s.ratios, 0.5),
      table.concat(split, " ")))
  end
end
print(("  tokens: %s"):format(wrong == 0 and "identical to ar's in every run" or ("WRONG %d times"):format(wrong)))
os.exit(wrong == 0)
