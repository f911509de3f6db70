-- The effect of coupled drafting: tokens per iteration with and without the noise, at one temperature.
-- dtrun run tests/bench/coupled.lua [--prompts 20] [--tokens 100] [--temp 1]
local dt = require "dt"

local opts = dt.args {
  costs = "table",
  doc = "compares tokens per iteration of drafting with and without coupling to the sampling noise",
  options = {
    { "prompts", 20, min = 1, max = 40, doc = "prompts, taken from both folders alternately; each has its own seed" },
    { "tokens", 100, short = "n", min = 2, max = 1000, doc = "tokens sampled per prompt" },
    { "temp", 1.0, min = 0.001, max = 100, doc = "temperature" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local POLICIES = { "linear", "hf_assisted", "fixed_tree", "dynatree", "eagle2", "specinfer" }

local pair = assert(dt.load(opts.load))
local iterations = { [true] = {}, [false] = {} } -- index: coupled, then the policy
for p = 1, opts.prompts do
  local folder = p % 2 == 1 and "wikitext2" or "novels"
  local file = assert(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE, folder, (p + 1) // 2), "rb"))
  local prefix = assert(pair:prefix(file:read "a"))
  file:close()
  for _, policy in ipairs(POLICIES) do
    local hash
    for _, coupled in ipairs { true, false } do
      local stats = assert(pair:generate {
        policy = policy, prompt = prefix, tokens = opts.tokens, ignore_eos = true, seed = p, temp = opts.temp,
        coupled = coupled,
      }).stats
      assert(stats.output_hash == (hash or stats.output_hash), policy .. ": the output differs")
      hash = stats.output_hash
      iterations[coupled][policy] = (iterations[coupled][policy] or 0) + stats.iterations
    end
  end
end

print(("%d prompts, %d tokens each, temperature %g: tokens per iteration"):format(opts.prompts, opts.tokens, opts.temp))
for _, policy in ipairs(POLICIES) do
  local tokens, with, without = opts.prompts * opts.tokens, iterations[true][policy], iterations[false][policy]
  print(("  %-12s coupled %.3f, uncoupled %.3f: %.2fx"):format(policy, tokens / with, tokens / without, without / with))
end
