-- Makes a deeper target that says the same: dtrun run tests/bench/deepen.lua OUT [TIMES]
--
-- The bundled target fits in a processor's cache, where reading the weights, the limit of plain decoding, is cheap. OUT
-- (a folder) gets a target of TIMES (25) times its layers: copies whose attention and MLP outputs are set to zero.
-- They add nothing to the text, and their bytes must be read and multiplied like any others. The bundled draft
-- thus guesses for it as well as ever, and what a memory-bound pair gains can be measured without a download:
--   dtrun run tests/bench/alive.lua -m OUT -md models/mini-draft --prompts 10
local dt = require "dt"

local out, times = arg[1], math.tointeger(tonumber(arg[2] or 25))
if not out or not times or times < 1 then
  io.stderr:write("usage: dtrun run tests/bench/deepen.lua OUT [TIMES]\n")
  os.exit(2)
end
local FROM = (arg[0]:match "^(.*/)" or "./") .. "../../models/mini-target/"

local function read(name)
  local file = assert(io.open(FROM .. name, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

local function write(name, ...)
  local file = assert(io.open(out .. "/" .. name, "wb"))
  for _, bytes in ipairs { ... } do assert(file:write(bytes)) end
  assert(file:close())
end

local config = assert(dt.json.decode(read "config.json"))
local layers = config.num_hidden_layers
local weights = read "model.safetensors"
local length = ("<I8"):unpack(weights)
local header = assert(dt.json.decode(weights:sub(9, 8 + length)))

-- The tensors of the new file, in order: {name, entry of the old header, is it all zeros}.
local tensors = {}
for name, entry in pairs(header) do
  local layer, rest = name:match "^gpt_neox%.layers%.(%d+)%.(.*)$"
  if layer then
    local adds = rest:find "^attention%.dense%." or rest:find "^mlp%.dense_4h_to_h%."
    for copy = 0, times - 1 do
      local new = ("gpt_neox.layers.%d.%s"):format(layer + copy * layers, rest)
      tensors[#tensors + 1] = { new, entry, adds and copy > 0 }
    end
  elseif name ~= "__metadata__" then
    tensors[#tensors + 1] = { name, entry }
  end
end
table.sort(tensors, function(a, b) return a[1] < b[1] end)

local new_header, parts, offset = {}, {}, 0
for i, tensor in ipairs(tensors) do
  local name, entry, zero = table.unpack(tensor)
  local first, last = entry.data_offsets[1], entry.data_offsets[2]
  new_header[name] = { dtype = entry.dtype, shape = entry.shape, data_offsets = { offset, offset + last - first } }
  parts[i] = zero and ("\0"):rep(last - first) or weights:sub(9 + length + first, 8 + length + last)
  offset = offset + last - first
end

assert(os.execute(("mkdir -p '%s'"):format(out:gsub("'", "'\\''"))))
config.num_hidden_layers = layers * times
local text = dt.json.encode(new_header)
text = text .. (" "):rep(-#text % 8)
write("config.json", dt.json.encode(config))
write("tokenizer.json", read "tokenizer.json")
write("model.safetensors", ("<I8"):pack(#text), text, table.concat(parts))
print(("%s: %d layers, %.0f MB"):format(out, layers * times, (#text + offset) / 1e6))
