-- Copies a model folder and damages the copy: dtrun run checkpoint.lua FROM TO EDIT [ARGUMENTS], see `edits`.
local from, to, edit = arg[1], arg[2], arg[3]

local function read(name)
  local file = assert(io.open(from .. "/" .. name, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function write(name, text)
  local file = assert(io.open(to .. "/" .. name, "wb"))
  file:write(text)
  assert(file:close())
end

-- Returns the list of {name, dtype, shape, first, last} in a header, in the order of the file.
local function parse(header)
  local list = {}
  local entry = '"([^"]+)":{"dtype":"(%w+)","shape":%[([%d,]*)%],"data_offsets":%[(%d+),(%d+)%]}'
  for name, dtype, shape, first, last in header:gmatch(entry) do
    list[#list + 1] = { name = name, dtype = dtype, shape = shape, first = tonumber(first), last = tonumber(last) }
  end
  return list
end

local function format(list)
  local parts = {}
  for i, t in ipairs(list) do
    local entry = '"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'
    parts[i] = entry:format(t.name, t.dtype, t.shape, t.first, t.last)
  end
  local text = "{" .. table.concat(parts, ",") .. "}"
  return text .. (" "):rep(-#text % 8)
end

local weights = read("model.safetensors")
local header_length = string.unpack("<I8", weights)
local list = parse(weights:sub(9, 8 + header_length))
local data = weights:sub(9 + header_length)

local function find(name)
  for i, t in ipairs(list) do
    if t.name == name then return t, i end
  end
  error("no tensor " .. name)
end

-- Each of these may change list and data; a returned text replaces the whole weight file.
local edits = {
  none = function() end,
  misalign = function() -- allowed by the format: the data begins at an odd address
    local header = format(list) .. " "
    return string.pack("<I8", #header) .. header .. data
  end,
  truncate = function(bytes) return weights:sub(1, tonumber(bytes)) end,
  append = function(text) return weights .. text end,
  header_length = function(n) return string.pack("<I8", tonumber(n)) .. weights:sub(9) end,
  header = function(text) return string.pack("<I8", #text) .. text .. data end,
  reshape = function(name, shape) find(name).shape = shape end,
  dtype = function(name, dtype) find(name).dtype = dtype end,
  rename = function(name, other) find(name).name = other end,
  offsets = function(name, first, last)
    local t = find(name)
    t.first, t.last = tonumber(first), tonumber(last)
  end,
  poke = function(name, at, bytes) -- hexadecimal
    local first = find(name).first + tonumber(at)
    bytes = bytes:gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end)
    data = data:sub(1, first) .. bytes .. data:sub(first + #bytes + 1)
  end,
  -- Rows of padding at the end of both vocabulary matrices. They equal row 0, so that a tie, which goes to the lowest
  -- id, keeps them from ever being chosen.
  pad_vocabulary = function(rows)
    local parts, at = {}, 0
    for i, t in ipairs(list) do
      local bytes = data:sub(t.first + 1, t.last)
      local height, width = t.shape:match("^(%d+),(%d+)$")
      if t.name == "embed_out.weight" or t.name == "gpt_neox.embed_in.weight" then
        bytes = bytes .. bytes:sub(1, width * 2):rep(tonumber(rows))
        t.shape = ("%d,%d"):format(height + rows, width)
      end
      parts[i], t.first, t.last = bytes, at, at + #bytes
      at = at + #bytes
    end
    data = table.concat(parts)
  end,
}

local whole = assert(edits[edit], "no such edit: " .. tostring(edit))(table.unpack(arg, 4))
assert(os.execute(("mkdir -p '%s'"):format(to)))
local config = read("config.json")
if edit == "pad_vocabulary" then
  config = config:gsub('("vocab_size": *)(%d+)', function(key, n) return ("%s%d"):format(key, n + arg[4]) end)
end
write("config.json", config)
write("tokenizer.json", read("tokenizer.json"))
local header = format(list)
write("model.safetensors", whole or string.pack("<I8", #header) .. header .. data)
