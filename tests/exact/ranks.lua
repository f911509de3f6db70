-- What models write under policies, greedily and sampled, one line for each: the same lines from every number of ranks.
--   mpirun -n R dtrun run tests/exact/ranks.lua [MODEL...]      MODELs have no draft model, as the bundled pair has
local dt = require "dt"

local opts = dt.args { doc = "prints a hash of what models write", models = false, rest = "MODEL..." }
local HERE = arg[0]:match "^(.*/)" or "./"
local PAIR = { { "ar" }, { "dynatree" }, { "fixed_tree" }, { "prompt_lookup" }, { HERE .. "hostile/random_trees.lua" },
  { HERE .. "hostile/rollbacks.lua" }, { HERE .. "hostile/keep_random.lua" } }
local ALONE = { { "ar" }, { "token_recycling", { total = 12 } } }
local SAMPLING = { {}, { temp = 0.8, seed = 3 }, { temp = 1, top_p = 0.9, seed = 4 } }
local PROMPT = "It was a dark night, and the ship lay still. The captain said that the ship"

local function generate(pair, policies, label, tokens)
  local prefix = dt.check(pair:prefix(PROMPT))
  for _, policy in ipairs(policies) do
    for _, sampling in ipairs(SAMPLING) do
      local result = dt.check(pair:generate { policy = policy[1], params = policy[2], prompt = prefix, tokens = tokens,
        ignore_eos = true, temp = sampling.temp, top_p = sampling.top_p, seed = sampling.seed })
      print(label, policy[1]:match "[^/]*$", sampling.temp or 0, result.stats.output_hash)
    end
  end
end

local pair = dt.check(dt.load { threads = 1 })
generate(pair, PAIR, "bundled pair", 32)
local batch = dt.check(pair:generate_batch { policy = "linear", prompts = { PROMPT, "Call me", "The sea" }, tokens = 24,
  slots = 2 })
for i = 1, 3 do print("batch", i, batch[i].stats.output_hash) end
local SCHEMA = [[{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
  "at": {"pattern": "^[a-z]{2,5}$"}},
  "required": ["name", "at"]}]]
for _, policy in ipairs { "ar", "dynatree" } do
  for temp = 0, 1 do
    local held = dt.check(pair:generate { policy = policy, prompt = PROMPT, tokens = 60, temp = temp, seed = 2,
      json_schema = SCHEMA })
    print("held to a schema", policy, temp, held.finish_reason, held.text)
  end
end
pair:close()
for _, caches in ipairs { "q8", "f32" } do
  pair = dt.check(dt.load { threads = 2, cache_dtype = caches, weights = "q8" }) -- a second pair in the process
  generate(pair, { { "dynatree" } }, "q8, caches in " .. caches, 24)
  pair:close()
end
-- Linear attention, which drafts for itself: trees across its states, texts that follow others in a cache, windows.
local HYBRID = HERE .. "../golden/logits/gguf_qwen35/model.gguf"
local TREES = { { "ar" }, { "dynatree" }, { HERE .. "hostile/random_trees.lua", { nodes = 256, vocab = 250 } },
  { HERE .. "hostile/rollbacks.lua" }, { HERE .. "hostile/keep_random.lua" } }
pair = dt.check(dt.load { target = HYBRID, draft = HYBRID, threads = 1 })
for _, policy in ipairs(TREES) do
  for window = 0, 40, 40 do
    for _, prompt in ipairs { PROMPT, PROMPT:upper() } do
      local result = dt.check(pair:generate { policy = policy[1], params = policy[2], prompt = prompt, tokens = 150,
        ignore_eos = true, window = window > 0 and window or nil, sinks = window > 0 and 4 or nil })
      print("linear attention", policy[1]:match "[^/]*$", window, result.stats.output_hash)
    end
  end
end
generate(pair, { { "ar" }, { "dynatree" } }, "linear attention, a prefix", 32)
pair:close()
for _, path in ipairs(opts.rest) do
  local alone = dt.check(dt.load { target = path, threads = 1 })
  generate(alone, ALONE, path:match "[^/]*$", 10)
  alone:close()
end
