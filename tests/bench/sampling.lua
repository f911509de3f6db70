-- Is rate, which has nothing to tune, worth it here, greedy or sampling? Plain decoding, rate and other policies with
-- the settings given, on novels, in turn: each arm's speed over plain decoding's.
--   dtrun run tests/bench/sampling.lua [--temp 0.8] [--arms "linear K=1, hf_assisted, ./rate_before.lua"]
--
-- Every arm runs a text before the next text comes, in an order that rotates; the prompt pass is left out. A round's
-- ratio is that of its sums, and the median over rounds counts. The last line is a bound by the table of costs: what a
-- chain would reach that knew where its first wrong guess will be and stopped before it.
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "plain decoding, rate and other policies in turn, and what no chain could exceed",
  options = {
    { "prompts", 16, min = 1, max = 20, doc = "novels to go on with, each with its own seed" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "temp", 0.8, min = 0, max = 100, doc = "temperature" },
    { "rounds", 4, min = 1, max = 100, doc = "runs of each arm and text" },
    { "arms", "linear K=1, linear K=2, hf_assisted", doc = "policies beside rate, each with its parameters" },
    { "costs", nil, type = "string", doc = "a table of costs (calibrate --json) instead of a measured one" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local LONGEST = 8 -- chain of the bound

local arms = {}
for text in ("ar, rate, " .. opts.arms):gmatch "[^,]+" do
  local arm = { label = text:match "^%s*(.-)%s*$", policy = text:match "[^%s]+", params = {}, ratios = {}, tokens = 0 }
  for name, value in text:gmatch "([%w_]+)=(%S+)" do
    arm.params[name] = math.tointeger(tonumber(value)) or tonumber(value) or value
  end
  arm.iterations, arm.policy_ms = 0, 0
  arms[#arms + 1] = arm
end

if opts.costs then
  local file <close> = assert(io.open(opts.costs, "rb"))
  opts.load.costs = assert(dt.json.decode(file:read "a"))
end
local pair = dt.check(dt.load(opts.load))
local costs = dt.check(dt.calibrate(pair))
local prefixes = {}
for p = 1, opts.prompts do
  local file <close> = assert(io.open(("%s../data/prompts/novels/%02d.txt"):format(HERE, p), "rb"))
  prefixes[p] = dt.check(pair:prefix(file:read "a"))
end

local function run(policy, params, p)
  return dt.check(pair:generate { policy = policy, params = params, prompt = prefixes[p], tokens = opts.tokens,
                                  ignore_eos = true, temp = opts.temp, seed = p }).stats
end

for round = 0, opts.rounds do -- round 0 warms up
  local ms = {}
  for p = 1, opts.prompts do
    local hash
    for i = 1, #arms do
      local k = (i + p + round) % #arms + 1
      local arm = arms[k]
      local stats = run(arm.policy, arm.params, p)
      local time = stats.time_ms
      hash = hash or stats.output_hash
      assert(stats.output_hash == hash, arm.label .. " changed the output")
      ms[k] = (ms[k] or 0) + time.draft + time.verify + time.commit + time.policy + time.other
      arm.tokens, arm.iterations = arm.tokens + opts.tokens, arm.iterations + stats.iterations
      arm.policy_ms = arm.policy_ms + time.policy
    end
  end
  for k, arm in ipairs(arms) do arm.ratios[round] = ms[1] / ms[k] end
end

-- A chain's tokens and time where it stops before its first wrong guess, by how often each depth was accepted.
local tokens, ms, context = 0, 0, opts.tokens
for p = 1, opts.prompts do
  local stats = run("linear", { K = LONGEST }, p)
  local reached = { [0] = stats.iterations }
  for _, level in ipairs(stats.accepted_by_depth) do reached[level.depth] = level.accepted end
  for length = 0, LONGEST do
    local n = (reached[length] or 0) - (reached[length + 1] or 0) -- iterations of so many right guesses
    tokens = tokens + n * (length + 1)
    ms = ms + n * (costs:target(length + 1, context) + length * costs:draft(1, context))
  end
end

print(("%d novels, %d tokens, temperature %g, %d rounds, %s, %d threads; outputs equal"):format(opts.prompts,
  opts.tokens, opts.temp, opts.rounds, pair.backend, pair.threads))
for _, arm in ipairs(arms) do
  local list = table.move(arm.ratios, 1, opts.rounds, 1, {})
  table.sort(list)
  print(("%-24s %.3fx plain [%.3f, %.3f], %.2f tokens and %.1f us of Lua per iteration"):format(arm.label,
    statistics.quantile(list, 0.5), list[1], list[#list], arm.tokens / arm.iterations,
    1000 * arm.policy_ms / arm.iterations))
end
print(("a chain that knew its first wrong guess: %.3fx plain"):format(tokens * costs:target(1, context) / ms))
