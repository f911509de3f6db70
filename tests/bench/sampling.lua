-- Is rate, which has nothing to tune, worth it here, greedy or sampling? Runs plain decoding, rate and other policies
-- with the given settings, alternately, and prints each arm's speedup over plain decoding.
--   dtrun run tests/bench/sampling.lua [--temp 0.8] [--arms "linear K=1, dynatree narrow, ./rate_before.lua"]
--     [--slots 8] [--by-table] [--sets scripts/prompts/tasks/*.jsonl] [--questions scripts/prompts/code.jsonl]
--     [-m TARGET -md DRAFT]
--
-- Every arm runs a text before the next text comes, in an order that rotates; the prompt pass is left out. A round's
-- ratio is that of its total times, and the median over rounds counts. The texts are novels, texts of sets, or chats in
-- ChatML. With --slots this many are generated at once, and each that ends makes room for the next. With --by-table
-- passes take the time that the table of costs says, and policies take none; this shows what their choices are worth,
-- without the machine's noise. With a table given by --cost-table the result is the same in every run. The last line is
-- a bound by the table: the speed of a chain that knows where its first wrong guess will be and stops before it.
local batches = require "dt.batches"
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "compares plain decoding, rate and other policies, and estimates a bound for chains",
  options = {
    { "prompts", 16, min = 1, max = 20, doc = "texts to continue, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "sets of texts to use instead of novels; --prompts texts of each" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) to use instead of novels, in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "slots", 1, min = 1, max = 20, doc = "texts at once" },
    { "temp", 0.8, min = 0, max = 100, doc = "temperature" },
    { "rounds", 4, min = 1, max = 100, doc = "runs of each arm and text" },
    { "arms", "linear K=1, linear K=2, hf_assisted", doc = "policies to compare with rate, with preset or parameters" },
    { "by_table", false, doc = "takes times from the table of costs, not from the clock (one text at a time)" },
    { "cost_table", nil, type = "string", doc = "a table of costs (dtrun run costs --json) instead of a measured one" },
  },
}
local by_table = dofile((arg[0]:match "^(.*/)" or "./") .. "by_table.lua")
local LONGEST = 8 -- maximum length of the bound's chain
local TRACE = opts.by_table and os.tmpname() or nil

local arms = by_table.arms("ar, rate, " .. opts.arms)
for _, arm in ipairs(arms) do arm.ratios, arm.tokens, arm.iterations, arm.policy_ms = {}, 0, 0, 0 end
local pair = by_table.load(opts)
local costs, times = dt.measure_costs(pair, { batch = opts.slots }) -- or a failure
dt.check(costs, times)

-- Lists of the prefixes of a run: one each, or all together.
local groups, texts, of_all = {}, by_table.texts(opts), opts.slots > 1
dt.check(not (of_all and opts.by_table) or nil, "sampling: --by-table runs one text at a time; leave out --slots")
dt.check(#texts >= opts.slots or nil, ("sampling: there are only %d texts for %d slots"):format(#texts, opts.slots))
for first = 1, of_all and 1 or #texts do
  groups[first] = dt.check(batches.open(pair, of_all and texts or { texts[first] }))
end

-- The milliseconds of a run, and its stats.
local function run(arm, g)
  local options = { policy = arm.policy, params = arm.params, preset = arm.preset, tokens = opts.tokens,
                    ignore_eos = true, temp = opts.temp, seed = g }
  if of_all then
    options.slots = opts.slots
    local start = dt.clock()
    local stats = dt.check(batches.generate(pair, groups[g], options)).stats
    return dt.clock() - start, stats
  end
  options.prompt, options.trace = groups[g][1], TRACE
  local stats = dt.check(pair:generate(options)).stats
  local time = stats.time_ms
  arm.policy_ms = arm.policy_ms + time.policy
  if TRACE then return by_table.ms(TRACE, costs, times, opts.temp), stats end
  return time.draft + time.verify + time.commit + time.policy + time.other, stats
end

for round = 0, opts.rounds do -- round 0 warms up
  local ms = {}
  for g = 1, #groups do
    local hash
    for i = 1, #arms do
      local k = (i + g + round) % #arms + 1
      local arm = arms[k]
      pair:forget()
      local took, stats = run(arm, g)
      hash = hash or stats.output_hash
      assert(stats.output_hash == hash, arm.label .. " changed the output")
      ms[k] = (ms[k] or 0) + took
      arm.tokens, arm.iterations = arm.tokens + #groups[g] * opts.tokens, arm.iterations + stats.iterations
    end
  end
  for k, arm in ipairs(arms) do arm.ratios[round] = ms[1] / ms[k] end
end

-- The tokens and the time of a chain that stops before its first wrong guess, from how often each depth was accepted.
local function bound()
  local tokens, ms, context = 0, 0, opts.tokens
  for g = 1, #groups do
    local _, stats = run({ policy = "linear", params = { K = LONGEST }, policy_ms = 0 }, g)
    local reached = { [0] = stats.iterations }
    for _, level in ipairs(stats.accepted_by_depth) do reached[level.depth] = level.accepted end
    for length = 0, LONGEST do
      local n = (reached[length] or 0) - (reached[length + 1] or 0) -- iterations with exactly this many right guesses
      tokens = tokens + n * (length + 1)
      ms = ms + n * (costs:target(length + 1, context) + length * costs:draft(1, context))
    end
  end
  return tokens * costs:target(1, context) / ms
end

print(("%d texts, %d at once, %d tokens, temperature %g, %d rounds, %s, %d threads; outputs equal"):format(
  #texts, opts.slots, opts.tokens, opts.temp, opts.rounds, pair.backend, pair.threads))
for _, arm in ipairs(arms) do
  local list = table.move(arm.ratios, 1, opts.rounds, 1, {})
  table.sort(list)
  print(("%-24s %.3fx plain [%.3f, %.3f], %.2f tokens%s per iteration"):format(arm.label,
    statistics.quantile(list, 0.5), list[1], list[#list], arm.tokens / arm.iterations,
    of_all and "" or (" and %.1f us of Lua"):format(1000 * arm.policy_ms / arm.iterations)))
end
if pair.draft and not of_all then
  print(("bound for a chain that stops before its first wrong guess: %.3fx plain"):format(bound()))
end
if TRACE then os.remove(TRACE) end
