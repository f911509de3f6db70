-- The exactness matrix: whatever the policy, the number of threads and the instruction set, the tokens are those of
-- plain decoding.  dtrun run tests/exact/matrix.lua [--prompts 40] [--tokens 200]
--
-- For each prompt, window and type of the target's weights and caches, `ar` on the first backend determines the tokens
-- that every other run must generate. The scalar backend is slow and gets 4 prompts, 64 tokens and small trees.
-- Variants that this machine does not support are listed and skipped; --backend and --threads select some. In addition
-- to each prompt alone, each policy generates from the first 6 in a batch: 5 at once, and the last one takes the slot
-- of the one that ends first. A draft head (-md) reads its target's features; then the target alone determines
-- the tokens.
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens of every policy, thread count and instruction set with plain decoding's",
  options = {
    { "prompts", 40, min = 1, max = 40, doc = "prompts, taken in turn from both folders" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens generated from each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "chars", nil, type = "integer", min = 1, doc = "number of characters of each prompt, from its beginning" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local HOSTILE = HERE .. "hostile/"

local POLICIES = dofile(HERE .. "policies.lua")
local SMALL = {
  { label = "ar", policy = "ar" },
  { label = "linear", policy = "linear", params = { K = 3 } },
  { label = "fixed_tree", policy = "fixed_tree", params = { D = 2, B = 2, N_max = 8 } },
  { label = "dynatree", policy = "dynatree", params = { N_max = 8 } },
  { label = "rate", policy = "rate" },
  { label = "token_recycling", policy = "token_recycling", params = { total = 8 }, seldom = true },
  { label = "random trees", policy = HOSTILE .. "random_trees.lua", params = { nodes = 8 } },
  { label = "rollbacks", policy = HOSTILE .. "rollbacks.lua" },
}
local COSTS = dofile(HERE .. "costs.lua")
local BATCH, SLOTS = 6, 5
local VARIANTS = {
  { backend = "cpu:avx512", threads = 2, policies = POLICIES },
  { backend = "cpu:avx512", threads = 1, policies = POLICIES },
  { backend = "cpu:avx2", threads = 2, policies = POLICIES },
  { backend = "cpu:avx2", threads = 1, policies = POLICIES },
  { backend = "cpu:avx512vnni", draft_weights = "q8", threads = 2, policies = SMALL },
  { backend = "cpu:avx512vnni", draft_weights = "q4", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:avxvnni", weights = "q8", draft_weights = "q4", threads = 2, policies = SMALL },
  { backend = "cpu:avxvnni", weights = "q4", cache_dtype = "q8", threads = 1, policies = SMALL, prompts = 4,
    tokens = 64 },
  { backend = "cpu:amx", weights = "q8", threads = 2, policies = SMALL },
  { backend = "cpu:amx", weights = "q4", draft_weights = "q8", threads = 2, policies = SMALL },
  { backend = "cpu:avx512", draft_vocab = "700", threads = 2, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:avx512vnni", weights = "q4", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:avx2", weights = "q8", draft_weights = "q4", threads = 2, policies = SMALL, prompts = 4,
    tokens = 64 },
  { backend = "cpu:avx512vnni", cache_dtype = "f32", threads = 2, policies = SMALL },
  { backend = "cpu:avx2", cache_dtype = "f32", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:avx512vnni", cache_dtype = "q8", threads = 2, policies = SMALL },
  { backend = "cpu:avx2", cache_dtype = "q8", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:avx512", window = 24, sinks = 4, threads = 2, policies = POLICIES, prompts = 4, tokens = 64 },
  { backend = "cpu:avx2", window = 3, sinks = 40, cache_dtype = "q8", threads = 1, policies = SMALL, prompts = 4,
    tokens = 64 },
  { backend = "cpu:avx512vnni", window = 9, sinks = 2, cache_dtype = "f32", threads = 2, policies = SMALL, prompts = 4,
    tokens = 64 },
  { backend = "cpu:dotprod", threads = 2, policies = POLICIES },
  { backend = "cpu:neon", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:i8mm", weights = "q8", draft_weights = "q4", threads = 2, policies = SMALL },
  { backend = "cpu:i8mm", weights = "q4", cache_dtype = "q8", threads = 1, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cpu:dotprod", window = 9, sinks = 2, cache_dtype = "f32", threads = 1, policies = SMALL, prompts = 4,
    tokens = 64 },
  { backend = "cpu:scalar", threads = 2, policies = SMALL, prompts = 4, tokens = 64 },
  { backend = "cuda", threads = 1, policies = SMALL },
  { backend = "cuda", window = 9, sinks = 2, threads = 1, policies = SMALL },
  { backend = "cuda", cache_dtype = "q8", threads = 1, policies = SMALL },
}

local function read_prompts()
  local prompts = {}
  for i = 1, 20 do
    for _, folder in ipairs { "wikitext2", "novels" } do
      local name = ("%s/%02d"):format(folder, i)
      local file = assert(io.open(("%s../../scripts/prompts/%s.txt"):format(HERE, name), "rb"))
      prompts[#prompts + 1] = { name = name, text = file:read(opts.chars or "a") }
      file:close()
    end
  end
  return table.move(prompts, 1, opts.prompts, 1, {})
end

local function first_difference(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return i end
  end
end

-- references: window and types of the target's weights and of the caches -> prompt -> tokens
local prompts, references, mistakes, skipped = read_prompts(), {}, 0, {}

local function mistake(...)
  mistakes = mistakes + 1
  print("  WRONG: " .. (...):format(select(2, ...)))
end

local function options(variant, case, tokens, seed)
  return {
    policy = case.policy, preset = case.preset, params = case.params, tokens = tokens, ignore_eos = true, seed = seed,
    temp = opts.temp, window = variant.window, sinks = variant.sinks,
  }
end

-- A result's tokens against the reference, its counts added to sum.
local function check(result, prompt, case, tokens, sum)
  local window = result.window or { last = 0, sinks = 0 }
  local types = ("%s %s %d %d"):format(result.target_dtype, result.cache_dtype, window.last, window.sinks)
  local reference = references[types] or {}
  references[types] = reference
  if not reference[prompt.name] then reference[prompt.name] = result.tokens end
  local expected = table.move(reference[prompt.name], 1, tokens, 1, {})
  local i = first_difference(result.tokens, expected)
  if i then
    mistake("%s, %s%s: token %d is %s, not %s", case.label, prompt.name, result.batch and ", in a batch" or "", i,
      result.tokens[i], expected[i])
  end
  sum.tokens = sum.tokens + #result.tokens
  sum.iterations = sum.iterations + result.stats.iterations
  sum.drafted = sum.drafted + result.stats.drafted
  sum.accepted = sum.accepted + result.stats.accepted
end

local function run_alone(pair, prefix, p, variant, case, tokens, sum)
  local start, request = dt.clock(), options(variant, case, tokens, p)
  request.prompt = prefix
  local result, err = pair:generate(request)
  sum.seconds = sum.seconds + (dt.clock() - start) / 1000
  if not result then return mistake("%s, %s: %s", case.label, prompts[p].name, err.message) end
  check(result, prompts[p], case, tokens, sum)
end

local function run_batch(pair, prefixes, variant, case, tokens, sum)
  local start, request = dt.clock(), options(variant, case, tokens, 1) -- prompt p has the seed p
  request.prompts, request.slots = prefixes, math.min(SLOTS, #prefixes)
  local results, failures = pair:generate_batch(request)
  sum.seconds = sum.seconds + (dt.clock() - start) / 1000
  if not results then return mistake("%s, a batch: %s", case.label, failures.message) end
  for p, failure in pairs(failures) do mistake("%s, %s, in a batch: %s", case.label, prompts[p].name, failure) end
  for p, result in ipairs(results) do check(result, prompts[p], case, tokens, sum) end
end

-- draft = false: the target alone.
local function open(variant, draft)
  local load, drafts = opts.load, draft ~= false
  return dt.load {
    target = load.target, draft = draft, ctx = load.ctx,
    backend = variant.backend, threads = variant.threads,
    weights = variant.weights or load.weights,
    draft_weights = drafts and (variant.draft_weights or load.draft_weights) or nil,
    draft_vocab = drafts and (variant.draft_vocab or load.draft_vocab) or nil,
    head_layers = drafts and load.head_layers or nil,
    cache_dtype = variant.cache_dtype or load.cache_dtype, costs = COSTS,
  }
end

-- Plain decoding of a target that keeps no features.
local function run_without_head(variant, n, tokens)
  local pair = assert(open(variant, false))
  local case, sum = { label = "ar without the head", policy = "ar" },
    { tokens = 0, iterations = 0, drafted = 0, accepted = 0, seconds = 0 }
  for p = 1, n do
    local prefix = assert(pair:prefix(prompts[p].text, { window = variant.window, sinks = variant.sinks }))
    run_alone(pair, prefix, p, variant, case, tokens, sum)
  end
  pair:close()
end

local function run_variant(variant)
  local load = opts.load
  if variant.backend ~= (load.backend or variant.backend) or variant.threads ~= (load.threads or variant.threads) then
    return
  end
  local name = ("%s, %d thread%s%s%s%s%s%s"):format(variant.backend, variant.threads, variant.threads > 1 and "s" or "",
    variant.weights and ", target in " .. variant.weights or "",
    variant.draft_weights and ", draft in " .. variant.draft_weights or "",
    variant.draft_vocab and ", ids of the draft: " .. variant.draft_vocab or "",
    variant.cache_dtype and ", caches in " .. variant.cache_dtype or "",
    variant.window and (", %d sinks and a window of %d"):format(variant.sinks, variant.window) or "")
  local pair, err = open(variant, load.draft)
  if not pair then
    skipped[#skipped + 1] = ("%s (%s)"):format(name, err.message)
    return
  end
  local n = math.min(variant.prompts or #prompts, #prompts)
  local tokens = math.min(variant.tokens or opts.tokens, opts.tokens)
  print(("%s: %d prompts, %d tokens each"):format(name, n, tokens))
  if pair.draft_head then run_without_head(variant, n, tokens) end
  local sums = {}
  for i, case in ipairs(variant.policies) do
    sums[i] = { label = case.label, tokens = 0, iterations = 0, drafted = 0, accepted = 0, seconds = 0 }
  end
  local first = {}
  for p = 1, n do
    local prefix = assert(pair:prefix(prompts[p].text, { window = variant.window, sinks = variant.sinks }))
    if p <= BATCH then first[p] = prefix end
    for i, case in ipairs(variant.policies) do run_alone(pair, prefix, p, variant, case, tokens, sums[i]) end
  end
  for i, case in ipairs(variant.policies) do run_batch(pair, first, variant, case, tokens, sums[i]) end
  for i, sum in ipairs(sums) do
    print(("  %-24s %6d tokens %6d iterations %6.3f tokens/iteration %7d drafted %6d accepted %6.1f s"):format(
      sum.label, sum.tokens, sum.iterations, sum.tokens / sum.iterations, sum.drafted, sum.accepted, sum.seconds))
    if sum.label ~= "ar" and not variant.policies[i].seldom and sum.accepted == 0 then
      mistake("%s: nothing was ever accepted", sum.label)
    end
  end
  pair:close()
end

for _, variant in ipairs(VARIANTS) do run_variant(variant) end
for _, reason in ipairs(skipped) do print("not on this machine: " .. reason) end
if not next(references) then
  print "nothing was run"
elseif mistakes == 0 then
  print "all tokens equal plain decoding's"
else
  print(mistakes .. " mistakes")
end
os.exit(mistakes == 0 and next(references) and 0 or 1)
