-- Quantized weights: one text for all. On every variant of the CPU, with one thread and two, under plain decoding and
-- policies, a model's tokens have one hash, greedy and at temperature 0.8.
--   dtrun run tests/exact/quantized.lua [--prompts 1] [-n 12] [--long]
-- Models: the bundled pair's target with its weights rounded to Q8_0 and to Q4_1, a tiny one whose matrices are of all
-- types in turn (Q4_K, Q6_K and twelve others), a tiny one of each further family of GGUF files, and what is there of
-- SmolLM2 (Q4_1; scripts/get-model brings it) and, with --long, Qwen2.5-Coder 0.5B (a mixture of Q4_K, Q6_K, Q5_0 and
-- Q8_0). A model drafts for itself, so that deep trees are accepted; a large one on a slow variant runs two policies
-- only, with two threads.
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens of quantized models under all variants, threads and policies",
  options = {
    { "prompts", 1, min = 1, max = 20, doc = "prompts" },
    { "tokens", 12, short = "n", min = 2, max = 400, doc = "tokens generated from each" },
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
  { label = "smollm3", path = GOLDEN .. "gguf_smollm3/model.gguf", ctx = 128 },
  { label = "granite", path = GOLDEN .. "gguf_granite/model.gguf", ctx = 128 },
  { label = "olmo2", path = GOLDEN .. "gguf_olmo2/model.gguf", ctx = 128 },
  { label = "olmo3", path = GOLDEN .. "gguf_olmo3/model.gguf", ctx = 128 },
  { label = "phi3", path = GOLDEN .. "gguf_phi3/model.gguf", ctx = 128 },
  { label = "gemma2", path = GOLDEN .. "gguf_gemma2/model.gguf", ctx = 128 },
  { label = "gemma3", path = GOLDEN .. "gguf_gemma3/model.gguf", ctx = 128 },
  { label = "qwen3moe", path = GOLDEN .. "gguf_qwen3moe/model.gguf", ctx = 128 },
  { label = "mixtral", path = GOLDEN .. "gguf_mixtral/model.gguf", ctx = 128 },
  { label = "gemma4", path = GOLDEN .. "gguf_gemma4/model.gguf", ctx = 128 },
  { label = "gemma4, inputs", path = GOLDEN .. "gguf_gemma4_inputs/model.gguf", ctx = 128 },
  { label = "SmolLM2 Q4_1", path = FOLDER .. "SmolLM2-135M-Instruct.Q4_1.gguf", large = true },
  { label = "Qwen 0.5B Q4_K_M", path = FOLDER .. "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", large = true, long = true },
}
local VARIANTS = { "amx", "avx512vnni", "avx512", "avx2", "scalar" } -- from the fastest down
local POLICIES = {
  { policy = "ar" },
  { policy = "linear", params = { K = 5 } },
  { policy = "dynatree", params = { N_max = 24 } },
  { policy = HERE .. "hostile/random_trees.lua", params = { nodes = 24, vocab = 256 } },
  { policy = HERE .. "hostile/rollbacks.lua" },
}
local COSTS = dofile(HERE .. "costs.lua")

local function read_prompt(i, chars)
  local file = dt.check(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE,
    i % 2 == 1 and "novels" or "wikitext2", (i + 1) // 2), "rb"))
  local text = file:read(chars)
  file:close()
  return text
end

local mistakes, absent = 0, {}

-- The text of a prompt under all policies; `hash` is what they must have, nil: the first one's.
local function run_prompt(pair, where, prefix, tokens, temp, policies, hash)
  for i = 1, policies do
    local case = POLICIES[i]
    local result, failure = pair:generate { policy = case.policy, params = case.params, prompt = prefix,
                                            tokens = tokens, temp = temp, ignore_eos = true,
                                            seed = 7 }
    hash = hash or result and result.stats.output_hash
    if not result or result.stats.output_hash ~= hash then
      mistakes = mistakes + 1
      print(("  WRONG: %s, %s: %s, not %s"):format(where, case.policy, result and result.stats.output_hash
        or failure.message, hash))
    end
  end
  return hash
end

local function run_model(model)
  local hashes, ran = {}, {}
  for v, variant in ipairs(VARIANTS) do
    local slow = model.large and v > 3
    for threads = slow and 2 or 1, 2 do
      local where = ("%s, cpu:%s, %d thread%s"):format(model.label, variant, threads, threads > 1 and "s" or "")
      local pair, failure = dt.load { target = model.path, draft = model.path, weights = model.weights,
                                      draft_weights = model.weights, ctx = model.ctx or 512,
                                      backend = "cpu:" .. variant, threads = threads, costs = COSTS }
      if pair then
        for p = 1, opts.prompts do
          local prefix = dt.check(pair:prefix(read_prompt(p, (model.large or model.ctx) and 60 or 300)))
          for _, temp in ipairs { 0, 0.8 } do
            local key, policies = temp * 1000 + p, slow and 2 or #POLICIES
            hashes[key] = run_prompt(pair, where, prefix, opts.tokens, temp, policies, hashes[key])
          end
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
  print(("  %-16s %s  on %s"):format(model.label, hashes[1], table.concat(ran, ", ")))
end

for _, model in ipairs(MODELS) do
  local there = io.open(model.path .. (model.path:find "%.gguf$" and "" or "/config.json"), "rb")
  if there then there:close() end
  if there and (opts.long or not model.long) then
    run_model(model)
  else
    print(("  %-16s left out: %s"):format(model.label, there and "give --long" or "it is not there"))
  end
end
for name in pairs(absent) do print("  not on this machine: " .. name) end
print(mistakes == 0 and "one hash for all" or mistakes .. " mistakes")
os.exit(mistakes == 0)
