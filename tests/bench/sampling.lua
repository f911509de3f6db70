-- Is rate, which has nothing to tune, worth it here, greedy or sampling? Plain decoding, rate and other policies with
-- the settings given, in turn: each arm's speed over plain decoding's.
--   dtrun run tests/bench/sampling.lua [--temp 0.8] [--arms "linear K=1, dynatree narrow, ./rate_before.lua"]
--     [--places 8] [--sets tests/data/prompts/tasks/*.jsonl] [--questions tests/data/prompts/code.jsonl]
--     [-m TARGET -md DRAFT]
--
-- Every arm runs a text before the next text comes, in an order that rotates; the prompt pass is left out. A round's
-- ratio is that of its sums, and the median over rounds counts. The texts are novels, texts of sets, or chats in
-- ChatML; with --places so many are generated at once. The last line is a bound by the table of costs: what a chain
-- would reach that knew where its first wrong guess will be and stopped before it.
local batches = require "dt.batches"
local dt = require "dt"
local experiment = require "dt.experiment"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "plain decoding, rate and other policies in turn, and what no chain could exceed",
  options = {
    { "prompts", 16, min = 1, max = 20, doc = "texts to go on with, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "so many texts of each of these sets instead of novels" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) instead of novels, put in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "places", 1, min = 1, max = 20, doc = "texts at once" },
    { "temp", 0.8, min = 0, max = 100, doc = "temperature" },
    { "rounds", 4, min = 1, max = 100, doc = "runs of each arm and text" },
    { "arms", "linear K=1, linear K=2, hf_assisted", doc = "policies beside rate, each with a preset or parameters" },
    { "costs", nil, type = "string", doc = "a table of costs (calibrate --json) instead of a measured one" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local CHATML = "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"
local LONGEST = 8 -- chain of the bound

local arms = {}
for text in ("ar, rate, " .. opts.arms):gmatch "[^,]+" do
  local arm = { label = text:match "^%s*(.-)%s*$", params = {}, ratios = {}, tokens = 0, iterations = 0, policy_ms = 0 }
  for word in text:gmatch "%S+" do
    local name, value = word:match "^([%w_]+)=(.+)$"
    if name then
      arm.params[name] = math.tointeger(tonumber(value)) or tonumber(value) or value
    elseif arm.policy then
      arm.preset = word
    else
      arm.policy = word
    end
  end
  arms[#arms + 1] = arm
end

if opts.costs then
  local file <close> = assert(io.open(opts.costs, "rb"))
  opts.load.costs = assert(dt.json.decode(file:read "a"))
end
local pair = dt.check(dt.load(opts.load))
local costs = dt.check(dt.calibrate(pair, { batch = opts.places }))

local function read_texts()
  local list = {}
  if opts.questions then
    for line in io.lines(opts.questions) do
      if #list < opts.prompts then list[#list + 1] = CHATML:format(assert(dt.json.decode(line)).prompt) end
    end
    return list
  end
  local files, of_set = {}, {}
  for p = 1, #opts.sets > 0 and 0 or opts.prompts do
    files[p] = ("%s../data/prompts/novels/%02d.txt"):format(HERE, p)
  end
  for _, prompt in ipairs(dt.check(experiment.prompts { files = files, sets = opts.sets })) do
    of_set[prompt.set] = (of_set[prompt.set] or 0) + 1
    if of_set[prompt.set] <= opts.prompts then list[#list + 1] = prompt.text end
  end
  return list
end

-- Lists of prefixes that are generated together; what is left over is left out.
local groups, texts = {}, read_texts()
for first = 1, #texts - opts.places + 1, opts.places do
  groups[#groups + 1] = dt.check(batches.open(pair, table.move(texts, first, first + opts.places - 1, 1, {})))
end
dt.check(groups[1], ("sampling: %d texts do not fill %d places"):format(#texts, opts.places))

-- Milliseconds of a run, and its stats.
local function run(arm, g)
  local options = { policy = arm.policy, params = arm.params, preset = arm.preset, tokens = opts.tokens,
                    ignore_eos = true, temp = opts.temp, seed = 1 + (g - 1) * opts.places }
  if opts.places > 1 then
    local stats = dt.check(batches.generate(pair, groups[g], options)).stats
    return 1000 * opts.places * opts.tokens / stats.tokens_per_second, stats
  end
  options.prompt = groups[g][1]
  local stats = dt.check(pair:generate(options)).stats
  local time = stats.time_ms
  arm.policy_ms = arm.policy_ms + time.policy
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
      arm.tokens, arm.iterations = arm.tokens + opts.places * opts.tokens, arm.iterations + stats.iterations
    end
  end
  for k, arm in ipairs(arms) do arm.ratios[round] = ms[1] / ms[k] end
end

-- A chain's tokens and time where it stops before its first wrong guess, by how often each depth was accepted.
local function bound()
  local tokens, ms, context = 0, 0, opts.tokens
  for g = 1, #groups do
    local _, stats = run({ policy = "linear", params = { K = LONGEST }, policy_ms = 0 }, g)
    local reached = { [0] = stats.iterations }
    for _, level in ipairs(stats.accepted_by_depth) do reached[level.depth] = level.accepted end
    for length = 0, LONGEST do
      local n = (reached[length] or 0) - (reached[length + 1] or 0) -- iterations of so many right guesses
      tokens = tokens + n * (length + 1)
      ms = ms + n * (costs:target(length + 1, context) + length * costs:draft(1, context))
    end
  end
  return tokens * costs:target(1, context) / ms
end

print(("%d texts, %d at once, %d tokens, temperature %g, %d rounds, %s, %d threads; outputs equal"):format(
  #groups * opts.places, opts.places, opts.tokens, opts.temp, opts.rounds, pair.backend, pair.threads))
for _, arm in ipairs(arms) do
  local list = table.move(arm.ratios, 1, opts.rounds, 1, {})
  table.sort(list)
  print(("%-24s %.3fx plain [%.3f, %.3f], %.2f tokens%s per iteration"):format(arm.label,
    statistics.quantile(list, 0.5), list[1], list[#list], arm.tokens / arm.iterations,
    opts.places > 1 and "" or (" and %.1f us of Lua"):format(1000 * arm.policy_ms / arm.iterations)))
end
if pair.draft and opts.places == 1 then
  print(("a chain that knew its first wrong guess: %.3fx plain"):format(bound()))
end
