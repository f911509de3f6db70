-- A small random head for the bundled target, of EAGLE-3 or Medusa, in F32, into a folder: its guesses are worth
-- nothing, and what reads it cannot tell.
--   dtrun run make_head.lua FOLDER [medusa [DISTANCES [BLOCKS]] | eagle3 HIDDEN]
local dt = require "dt"
local given = dt.args({ doc = "writes a random head", rest = "FOLDER [medusa..]", models = false }).rest
local folder, kind, distances, blocks = given[1], given[2], given[3] or 2, given[4] or 1

local HIDDEN = kind == "eagle3" and math.tointeger(given[3]) or 32
local TARGET, VOCAB, DRAFTED, HEADS, INNER = 256, 4096, 600, 4, 40

local CONFIG = ([[{"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": %d,
 "target_hidden_size": %d, "num_attention_heads": %d, "num_key_value_heads": %d, "intermediate_size": %d,
 "vocab_size": %d, "draft_vocab_size": %d, "num_hidden_layers": 1, "rms_norm_eps": 1e-05,
 "max_position_embeddings": 2048,
 "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 4]}}
]]):format(HIDDEN, TARGET, HEADS, HEADS, INNER, VOCAB, DRAFTED)

local function random(rows, cols, deviation)
  local numbers, n = {}, rows * cols
  for i = 1, math.min(n, 131072) do numbers[i] = ("<f"):pack((math.random() * 2 - 1) * deviation) end
  local pool = table.concat(numbers) -- is repeated in a large matrix
  return { "F32", cols == 1 and { rows } or { rows, cols }, pool:rep(n * 4 // #pool + 1):sub(1, n * 4) }
end

local function ones(n) return { "F32", { n }, (("<f"):pack(1)):rep(n) } end

local function offsets()
  local numbers = {}
  for i = 0, DRAFTED - 1 do numbers[i + 1] = ("<i8"):pack(i // 2) end
  return { "I64", { DRAFTED }, table.concat(numbers) }
end

-- All distances have the same output; of several blocks there is one, which is applied again.
local function medusa()
  local tensors, output = {}, random(VOCAB, TARGET, 0.2)
  for d = 0, distances - 1 do
    tensors[d .. ".0.linear.weight"] = random(TARGET, TARGET, 0.05)
    tensors[d .. ".0.linear.bias"] = random(TARGET, 1, 0.1)
    tensors[("%d.%d.weight"):format(d, blocks)] = output
  end
  local config = ('{"medusa_num_heads": 5, "medusa_num_layers": %d}'):format(blocks)
  return tensors, config, "medusa_lm_head.safetensors"
end

local layer = "midlayer."
local function eagle3()
  local tensors = {
    ["fc.weight"] = random(HIDDEN, 3 * TARGET, 0.05), ["norm.weight"] = ones(HIDDEN),
    ["embed_tokens.weight"] = random(VOCAB, HIDDEN, 1), ["lm_head.weight"] = random(DRAFTED, HIDDEN, 0.5),
    d2t = offsets(),
    [layer .. "input_layernorm.weight"] = ones(HIDDEN), [layer .. "hidden_norm.weight"] = ones(HIDDEN),
    [layer .. "post_attention_layernorm.weight"] = ones(HIDDEN),
    [layer .. "mlp.gate_proj.weight"] = random(INNER, HIDDEN, 0.2),
    [layer .. "mlp.up_proj.weight"] = random(INNER, HIDDEN, 0.2),
    [layer .. "mlp.down_proj.weight"] = random(HIDDEN, INNER, 0.2),
  }
  for _, name in ipairs { "q", "k", "v" } do
    tensors[layer .. "self_attn." .. name .. "_proj.weight"] = random(HIDDEN, 2 * HIDDEN, 0.2)
  end
  tensors[layer .. "self_attn.o_proj.weight"] = random(HIDDEN, HIDDEN, 0.2)
  return tensors, CONFIG, "model.safetensors"
end

math.randomseed(1)
local tensors, config, weights = (kind == "medusa" and medusa or eagle3)()

local names, header, data, at = {}, {}, {}, 0
for name in pairs(tensors) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local t = tensors[name]
  header[#header + 1] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(
    name, t[1], table.concat(t[2], ","), at, at + #t[3])
  data[#data + 1] = t[3]
  at = at + #t[3]
end
local text = "{" .. table.concat(header, ",") .. "}"
local file = assert(io.open(folder .. "/" .. weights, "wb"))
file:write(("<I8"):pack(#text), text, table.concat(data))
file:close()
file = assert(io.open(folder .. "/config.json", "w"))
file:write(config)
file:close()
