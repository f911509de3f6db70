-- Tokens per iteration and speed of the newer policies, compared with rate, linear and plain decoding, on the tasks.
-- dtrun run tests/bench/rivals.lua [--prompts 2] [--tokens 64] [--template chatml] [-m MODEL -md MODEL]
--
-- Every policy runs a prompt before the next prompt comes, in an order that rotates. Speeds are measured after the
-- prompt pass, as ratios to plain decoding's on the same prompt; the median is shown. On a busy machine only tokens per
-- iteration mean anything.
local dt = require "dt"

local opts = dt.args {
  costs = "table",
  doc = "tokens per iteration and speed of the newer policies on the tasks",
  options = {
    { "prompts", 2, min = 1, max = 10, doc = "prompts per task (of six)" },
    { "tokens", 64, short = "n", min = 2, max = 1000, doc = "tokens generated per prompt" },
    { "policies", "token_recycling,lookahead,suffix,prompt_lookup,linear,talon,sequoia,adaptive,caddtree,rate",
      doc = "names separated by commas" },
    { "template", "", doc = "chatml: puts prompts in ChatML" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local TASKS = { "mt_bench", "gsm8k", "humaneval", "alpaca", "qa", "sum" }
local CHATML = "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"

local function prompts_of(task)
  local list = {}
  for line in io.lines(("%s../../scripts/prompts/tasks/%s.jsonl"):format(HERE, task)) do
    local text = assert(dt.json.decode(line)).prompt
    list[#list + 1] = opts.template == "chatml" and CHATML:format(text) or text
    if #list == opts.prompts then break end
  end
  return list
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local pair = dt.check(dt.load(opts.load))
local names = { "ar" }
for name in opts.policies:gmatch "[%w_]+" do names[#names + 1] = name end
local sums, ratios = {}, {} -- policy -> task -> {tokens, iterations}; policy -> ratios of speed
for _, name in ipairs(names) do sums[name], ratios[name] = {}, {} end

local function run(name, prefix)
  pair:forget()
  local result = assert(pair:generate { policy = name, prompt = prefix, tokens = opts.tokens, ignore_eos = true })
  local ms = result.stats.time_ms
  return result, ms.draft + ms.verify + ms.commit + ms.policy
end

local turn = 0
for _, task in ipairs(TASKS) do
  for _, prompt in ipairs(prompts_of(task)) do
    local prefix, ms, hash = assert(pair:prefix(prompt)), {}, nil
    turn = turn + 1
    for i = 1, #names do
      local name = names[(i + turn) % #names + 1]
      local result, took = run(name, prefix)
      assert(not hash or result.stats.output_hash == hash, name .. " changed the output")
      hash, ms[name] = result.stats.output_hash, took
      local sum = sums[name][task] or { tokens = 0, iterations = 0 }
      sum.tokens, sum.iterations = sum.tokens + #result.tokens, sum.iterations + result.stats.iterations
      sums[name][task] = sum
    end
    for _, name in ipairs(names) do table.insert(ratios[name], ms.ar / ms[name]) end
  end
end

print(("%s, %d threads, %d prompts of each task, %d tokens; outputs equal"):format(pair.backend, pair.threads,
  opts.prompts, opts.tokens))
print(("%-16s"):format "tokens/iteration" .. ("%10s"):rep(#TASKS):format(table.unpack(TASKS)) .. "       all   speed")
for _, name in ipairs(names) do
  local cells, tokens, iterations = {}, 0, 0
  for i, task in ipairs(TASKS) do
    local sum = sums[name][task]
    cells[i] = ("%10.2f"):format(sum.tokens / sum.iterations)
    tokens, iterations = tokens + sum.tokens, iterations + sum.iterations
  end
  print(("%-16s%s%10.2f%7.2fx"):format(name, table.concat(cells), tokens / iterations, median(ratios[name])))
end
