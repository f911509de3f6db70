-- Sampling is exact: for one seed every policy gives the tokens of `ar`, coupled or not, alone or in a batch of
-- 2 to 8 with others, whatever the temperature and the filters.
-- dtrun run tests/exact/sampling.lua [--prompts 20] [--tokens 60]
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens that every policy samples with those of plain decoding",
  options = {
    { "prompts", 20, min = 1, max = 40, doc = "prompts, taken in turn from both folders; each has its own seed" },
    { "tokens", 60, short = "n", min = 2, max = 1000, doc = "tokens sampled from each" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local HOSTILE = HERE .. "hostile/"

local CASES = {
  { label = "ar", policy = "ar" },
  { label = "linear", policy = "linear", params = { K = 4 } },
  { label = "linear uncoupled", policy = "linear", params = { K = 4 }, coupled = false },
  { label = "fixed_tree", policy = "fixed_tree", params = { D = 4, B = 2 } },
  { label = "dynatree", policy = "dynatree" },
  { label = "dynatree uncoupled", policy = "dynatree", coupled = false },
  { label = "dynatree as_published", policy = "dynatree", preset = "as_published" },
  { label = "random trees", policy = HOSTILE .. "random_trees.lua" },
  { label = "keep of random parts", policy = HOSTILE .. "keep_random.lua" },
  { label = "rollbacks", policy = HOSTILE .. "rollbacks.lua" },
}
-- Every installed policy takes part.
for name in io.popen(("ls '%s../../policies'"):format(HERE)):lines() do
  local policy = name:match "^(.*)%.lua$"
  if policy and policy ~= "ar" and policy ~= "linear" and policy ~= "fixed_tree" and policy ~= "dynatree" then
    CASES[#CASES + 1] = { label = policy, policy = policy }
  end
end

local SETTINGS = dt.grid { temp = { 0.5, 1.0, 1.5 }, top_p = { 0.9, 1.0 } }
SETTINGS[#SETTINGS + 1] = { temp = 1.0, top_k = 40, min_p = 0.02 }

local load = { costs = dofile(HERE .. "costs.lua") }
for name, value in pairs(opts.load) do load[name] = value end
local pair = assert(dt.load(load))
for _, case in ipairs(CASES) do case.iterations, case.tokens, case.accepted = 0, 0, 0 end
local mistakes, different = 0, 0

local prefixes = {}
for p = 1, opts.prompts do
  local folder = p % 2 == 1 and "wikitext2" or "novels"
  local file = assert(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE, folder, (p + 1) // 2), "rb"))
  prefixes[p] = assert(pair:prefix(file:read "a"))
  file:close()
end

-- The options that generate and generate_batch share.
local function options(case, setting, seed)
  return {
    policy = case.policy, preset = case.preset, params = case.params, coupled = case.coupled, seed = seed,
    tokens = opts.tokens, ignore_eos = true, temp = setting.temp, top_k = setting.top_k, top_p = setting.top_p,
    min_p = setting.min_p,
  }
end

local function sample(case, setting, p, seed)
  local request = options(case, setting, seed)
  request.prompt = prefixes[p]
  return assert(pair:generate(request))
end

local function sample_batch(case, setting, slots)
  local request = options(case, setting, 1) -- prompt p has the seed p
  request.prompts, request.slots = prefixes, slots
  local results, failures = assert(pair:generate_batch(request))
  assert(next(failures) == nil, select(2, next(failures)))
  return results
end

local function compare(case, setting, p, slots, result, plain)
  for i = 1, math.max(#plain.tokens, #result.tokens) do
    if result.tokens[i] ~= plain.tokens[i] then
      mistakes = mistakes + 1
      print(("  WRONG: %s, %d at once, prompt %d, temp %g, top_p %s: token %d is %s, not %s"):format(case.label, slots,
        p, setting.temp, setting.top_p, i, result.tokens[i], plain.tokens[i]))
      break
    end
  end
  case.iterations = case.iterations + result.stats.iterations
  case.tokens = case.tokens + #result.tokens
  case.accepted = case.accepted + result.stats.accepted
  case.drafts = type(result.draft) == "string"
end

for s, setting in ipairs(SETTINGS) do
  local plain = {}
  for p = 1, opts.prompts do
    plain[p] = sample(CASES[1], setting, p, p)
    local other = sample(CASES[1], setting, p, p + 1000)
    if other.stats.output_hash ~= plain[p].stats.output_hash then different = different + 1 end
  end
  local slots = 1 + s
  for c, case in ipairs(CASES) do
    for p = 1, c > 1 and opts.prompts or 0 do compare(case, setting, p, 1, sample(case, setting, p, p), plain[p]) end
    for p, result in ipairs(sample_batch(case, setting, slots)) do
      compare(case, setting, p, slots, result, plain[p])
    end
  end
end

for _, case in ipairs(CASES) do
  print(("  %-22s %7d tokens %6.3f per iteration"):format(case.label, case.tokens, case.tokens / case.iterations))
  if case.accepted == 0 and case.drafts then
    mistakes = mistakes + 1
    print("  WRONG: nothing was ever accepted")
  end
end
local runs = opts.prompts * #SETTINGS
print(("%d prompts, %d settings: %d mistakes; another seed gave another text in %d of %d cases"):format(
  opts.prompts, #SETTINGS, mistakes, different, runs))
os.exit(mistakes == 0 and different > runs * 0.9)
