-- Quantized weights and further families: one text for all. On every variant of the CPU, with one thread and two, under
-- plain decoding and policies, a model's tokens have one hash, greedy and at temperature 0.8.
--   dtrun run tests/exact/quantized.lua [--prompts 1] [-n 12] [--quick | --long]
-- Models: the bundled pair's target with its weights rounded to Q8_0 and to Q4_1, a tiny one whose matrices are of all
-- types in turn (Q4_K, Q6_K and twelve others), a tiny one of each further family of GGUF files (under every policy of
-- the matrix, and in batches too), and what is there of SmolLM2 (Q4_1; scripts/get-model brings it) and, with --long,
-- Qwen2.5-Coder 0.5B (a mixture of Q4_K, Q6_K, Q5_0 and Q8_0). A model drafts for itself, so that deep trees are
-- accepted; a large one on a slow variant runs two policies only, with two threads. With --quick, for an emulator, all
-- others do so, too. The hashes of 4 and 12 tokens are in ../golden/quantized_hash.txt, the same for every machine.
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens of quantized models under all variants, threads and policies",
  options = {
    { "prompts", 1, min = 1, max = 20, doc = "prompts" },
    { "tokens", 12, short = "n", min = 2, max = 400, doc = "tokens generated from each" },
    { "quick", false, doc = "two policies and two threads; no large model" },
    { "long", false, doc = "the half billion parameters too" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local FOLDER = HERE .. "../../models/"
local GOLDEN = HERE .. "../golden/logits/"
local MODELS = {
  { label = "bundled in Q8_0", path = FOLDER .. "mini-target", weights = "q8" },
  { label = "bundled in Q4_1", path = FOLDER .. "mini-target", weights = "q4" },
  { label = "tiny, all types", path = GOLDEN .. "gguf_llama/model.gguf", ctx = 128 },
  { label = "smollm3", path = GOLDEN .. "gguf_smollm3/model.gguf", ctx = 128, family = true },
  { label = "granite", path = GOLDEN .. "gguf_granite/model.gguf", ctx = 128, family = true },
  { label = "olmo2", path = GOLDEN .. "gguf_olmo2/model.gguf", ctx = 128, family = true },
  { label = "olmo3", path = GOLDEN .. "gguf_olmo3/model.gguf", ctx = 128, family = true },
  { label = "phi3", path = GOLDEN .. "gguf_phi3/model.gguf", ctx = 128, family = true },
  { label = "phi3, long", path = GOLDEN .. "gguf_phi3_long/model.gguf", ctx = 128, family = true },
  { label = "phi3, short", path = GOLDEN .. "gguf_phi3_long/model.gguf", ctx = 48, chars = 20, family = true },
  { label = "gemma2", path = GOLDEN .. "gguf_gemma2/model.gguf", ctx = 128, family = true },
  { label = "gemma3", path = GOLDEN .. "gguf_gemma3/model.gguf", ctx = 128, family = true },
  { label = "qwen3moe", path = GOLDEN .. "gguf_qwen3moe/model.gguf", ctx = 128, family = true },
  { label = "mixtral", path = GOLDEN .. "gguf_mixtral/model.gguf", ctx = 128, family = true },
  { label = "gpt-oss", path = GOLDEN .. "gguf_gpt_oss/model.gguf", ctx = 128, family = true },
  { label = "gpt-oss, top 1", path = GOLDEN .. "gguf_gpt_oss_one/model.gguf", ctx = 128, family = true },
  { label = "glm-4.5", path = GOLDEN .. "gguf_glm4_moe/model.gguf", ctx = 128, family = true },
  { label = "gemma4, experts", path = GOLDEN .. "gguf_gemma4_experts/model.gguf", ctx = 128, family = true },
  { label = "gemma4", path = GOLDEN .. "gguf_gemma4/model.gguf", ctx = 128, family = true },
  { label = "qwen35", path = GOLDEN .. "gguf_qwen35/model.gguf", ctx = 256, chars = 120, family = true },
  { label = "qwen35moe", path = GOLDEN .. "gguf_qwen35moe/model.gguf", ctx = 256, chars = 120, family = true },
  { label = "gemma4, inputs", path = GOLDEN .. "gguf_gemma4_inputs/model.gguf", ctx = 128, family = true },
  { label = "SmolLM2 Q4_1", path = FOLDER .. "SmolLM2-135M-Instruct.Q4_1.gguf", large = true },
  { label = "Qwen 0.5B Q4_K_M", path = FOLDER .. "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", large = true, long = true },
}
-- From the fastest down.
local VARIANTS = { "amx", "avx512vnni", "avxvnni", "avx512", "avx2", "i8mm", "dotprod", "neon", "scalar" }
local POLICIES = {
  { policy = "ar" },
  { policy = "linear", params = { K = 5 } },
  { policy = "dynatree", params = { N_max = 24 } },
  { policy = HERE .. "hostile/random_trees.lua", params = { nodes = 24, vocab = 256 } },
  { policy = HERE .. "hostile/rollbacks.lua" },
}
local COSTS = dofile(HERE .. "costs.lua")
local EVERY_POLICY = {}
for _, case in ipairs(dofile(HERE .. "policies.lua")) do -- the families' models have few ids, for blind guesses too
  if case.policy:find "random_trees" then case.params = { vocab = 256 } end
  if not case.policy:find "one_level" then EVERY_POLICY[#EVERY_POLICY + 1] = case end
end
local BATCH, SLOTS, SEED = 3, 2, 7 -- texts of a batch; texts at once; seed of the first one

local function read_prompt(i, chars)
  local file = dt.check(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE,
    i % 2 == 1 and "novels" or "wikitext2", (i + 1) // 2), "rb"))
  local text = file:read(chars)
  file:close()
  return text
end

local mistakes, absent, golden = 0, {}, {}
for line in io.lines(HERE .. "../golden/quantized_hash.txt") do
  local label, tokens, greedy, sampled = line:match "^([^#]-)%s+(%d+) (%x+) (%x+)$"
  if label then golden[label .. tokens] = { [1] = greedy, [801] = sampled } end -- by text and temperature
end

-- Compares a result's hash with that of its text and temperature, which the first result sets.
local function check(hashes, key, result, where, label, how)
  local found = type(result) == "table" and result.stats.output_hash or tostring(result)
  hashes[key] = hashes[key] or found
  if found ~= hashes[key] then
    mistakes = mistakes + 1
    print(("  WRONG: %s, %s%s: %s, not %s"):format(where, label, how, found, hashes[key]))
  end
end

-- All texts under a policy, each alone, and of a family all at once.
local function run_case(pair, model, where, prefixes, case, temp, hashes)
  local function asked(t)
    t.policy, t.preset, t.params, t.tokens = case.policy, case.preset, case.params, opts.tokens
    t.temp, t.ignore_eos = temp, true
    return t
  end
  local label = case.label or case.policy
  for p, prefix in ipairs(prefixes) do
    local result, failure = pair:generate(asked { prompt = prefix, seed = SEED + p - 1 })
    check(hashes, temp * 1000 + p, result or failure.message, where, label, "")
  end
  if not model.family then return end
  local results, failures = pair:generate_batch(asked { prompts = prefixes, slots = SLOTS, seed = SEED })
  for p in ipairs(prefixes) do
    check(hashes, temp * 1000 + p, results and (results[p] or failures[p]) or failures.message, where, label,
      ", in a batch")
  end
end

local function run_model(model)
  local hashes, ran = golden[model.label .. opts.tokens] or {}, {}
  for v, variant in ipairs(VARIANTS) do
    local slow = opts.quick or model.large and v > 3
    for threads = slow and 2 or 1, 2 do
      local where = ("%s, cpu:%s, %d thread%s"):format(model.label, variant, threads, threads > 1 and "s" or "")
      local pair, failure = dt.load { target = model.path, draft = model.path, weights = model.weights,
                                      draft_weights = model.weights, ctx = model.ctx or 512,
                                      backend = "cpu:" .. variant, threads = threads, costs = COSTS }
      if pair then
        local prefixes, cases = {}, model.family and EVERY_POLICY or POLICIES
        for p = 1, model.family and math.max(opts.prompts, BATCH) or opts.prompts do
          prefixes[p] = dt.check(pair:prefix(read_prompt(p, model.chars or (model.large or model.ctx) and 60 or 300)))
        end
        for _, temp in ipairs { 0, 0.8 } do
          for i = 1, slow and 2 or #cases do run_case(pair, model, where, prefixes, cases[i], temp, hashes) end
        end
        pair:close()
        ran[#ran + 1] = ("%s %d"):format(variant, threads)
      elseif failure.message:find "no such variant" then
        absent["cpu:" .. variant] = true
      else
        error(where .. ": " .. failure.message)
      end
    end
  end
  print(("  %-16s %2d %s %s  on %s"):format(model.label, opts.tokens, hashes[1], hashes[801], table.concat(ran, ", ")))
end

for _, model in ipairs(MODELS) do
  local there = io.open(model.path .. (model.path:find "%.gguf$" and "" or "/config.json"), "rb")
  if there then there:close() end
  if there and (opts.long or not model.long) and not (opts.quick and model.large) then
    run_model(model)
  else
    local why = not there and "it is not there" or opts.quick and "--quick" or "give --long"
    print(("  %-16s left out: %s"):format(model.label, why))
  end
end
for name in pairs(absent) do print("  not on this machine: " .. name) end
print(mistakes == 0 and "one hash for all" or mistakes .. " mistakes")
os.exit(mistakes == 0)
