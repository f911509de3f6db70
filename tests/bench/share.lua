-- How close do policies come to an oracle? By the table of costs, without the machine's noise and without policy
-- overhead, compares plain decoding, policies, and the best that a chain and a tree could do if they knew the text to
-- come.
--   dtrun run tests/bench/share.lua [--temp 0.8] [--arms "rate, linear K=2, dynatree narrow"] [--prompts 20]
--     [--sets scripts/prompts/tasks/*.jsonl] [--questions FILE.jsonl] [--cost-table FILE] [-m TARGET -md DRAFT]
--
-- The first arm is the one of interest; it is compared with the best of the others. dt.bound computes the bounds.
local bound = require "dt.bound"
local dt = require "dt"
local by_table = dofile((arg[0]:match "^(.*/)" or "./") .. "by_table.lua")

local opts = dt.args {
  costs = "table",
  doc = "compares policies with the best possible speed, by the table of costs",
  options = {
    { "prompts", 20, min = 1, max = 20, doc = "texts to continue, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "sets of texts to use instead of novels; --prompts texts of each" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) to use instead of novels, in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 400, doc = "tokens of each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "arms", "rate, linear K=1, linear K=2, linear K=4, dynatree, dynatree narrow, hf_assisted, prompt_lookup",
      doc = "policies, each with a preset or parameters" },
    { "no_bounds", false, doc = "leaves out the bounds, for which the draft model computes long" },
    { "cost_table", nil, type = "string", doc = "a table of costs (dtrun run costs --json) instead of a measured one" },
  },
}
local pair = by_table.load(opts)
local costs, times = dt.measure_costs(pair) -- or a failure
dt.check(costs, times)
local file = os.tmpname()

local arms = by_table.arms("ar, " .. opts.arms)
for _, arm in ipairs(arms) do arm.ms, arm.least, arm.iterations, arm.mean = 0, math.huge, 0, 0 end
local chain, tree, texts = 0, 0, by_table.texts(opts)
local worst, worst_text = math.huge, 0 -- of a text: the first arm's speed over that of the best other arm

-- Runs a text with a trace. Returns its result, the time by the table, and its iterations.
local function run(request, prefix, seed)
  local options = { prompt = prefix, tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = seed,
                    trace = file }
  for key, value in pairs(request) do options[key] = value end
  pair:forget()
  local result = dt.check(pair:generate(options))
  return result, by_table.ms(file, costs, times, opts.temp)
end

for p, text in ipairs(texts) do
  local prefix, plain, plain_ms = dt.check(pair:prefix(text)), nil, 0
  local first, best = nil, math.huge
  for i, arm in ipairs(arms) do
    local result, ms = run({ policy = arm.policy, preset = arm.preset, params = arm.params }, prefix, p)
    if arm.policy == "ar" then plain, plain_ms = result, ms end
    assert(result.stats.output_hash == plain.stats.output_hash, arm.label .. " changed the output")
    arm.ms, arm.iterations = arm.ms + ms, arm.iterations + result.stats.iterations
    arm.least, arm.mean = math.min(arm.least, plain_ms / ms), arm.mean + plain_ms / ms / #texts
    if i == 2 then first = ms elseif i > 2 then best = math.min(best, ms) end
  end
  if best / first < worst then worst, worst_text = best / first, p end
  if not opts.no_bounds then
    local request = { prompt = prefix, tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = p }
    local of = dt.check(bound.of(pair, request, plain, costs, times))
    chain, tree = chain + of.chain.ms, tree + of.tree.ms
  end
end
os.remove(file)

print(("%d texts of %d tokens, temperature %g, %s with %s, %s, %d threads, by the table; outputs equal"):format(#texts,
  opts.tokens, opts.temp, pair.target.path, pair.draft and pair.draft.path or "no draft model", pair.backend,
  pair.threads))
local plain, best = arms[1].ms, nil
for i = 2, #arms do
  local arm = arms[i]
  local shares = opts.no_bounds and "" or (", %.1f %% of the chain's bound, %.1f %% of the tree's"):format(
    100 * chain / arm.ms, 100 * tree / arm.ms)
  print(("%-20s %.3fx plain (slowest text %.3fx), %.2f tokens per iteration%s"):format(arm.label, plain / arm.ms,
    arm.least, #texts * opts.tokens / arm.iterations, shares))
  if i > 2 and (not best or arm.ms < best.ms) then best = arm end
end
if best then
  local mean = 0
  for i = 3, #arms do mean = math.max(mean, arms[i].mean) end
  print(("%s compared with the best other policy, %s: %.3fx; the best mean over texts: %.3fx"):format(arms[2].label,
    best.label, best.ms / arms[2].ms, arms[2].mean / mean))
  print(("its worst text, number %d: %.3fx of the best other on that text"):format(worst_text, worst))
end
if not opts.no_bounds then
  print(("bounds: a chain %.3fx plain, a tree %.3fx"):format(plain / chain, plain / tree))
end
