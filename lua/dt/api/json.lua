-- JSON. encode sorts keys; a table with [1], or one made by json.array, is an array, any other an object; json.null is
-- null. decode leaves null out of objects and turns it into json.null in arrays; numbers without fraction or exponent
-- are integers.
local json = {}

json.null = setmetatable({}, { __tostring = function() return "null" end })

local Array = {}

-- Marks a table, empty or not, as an array.
function json.array(t) return setmetatable(t or {}, Array) end

-- Whether a table from decode, or from json.array, is an array. An empty table that a program made is an object.
function json.is_array(t) return t[1] ~= nil or getmetatable(t) == Array end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quote(text)
  return '"' .. text:gsub('[%c"\\\127]', function(c) return ESCAPES[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function number(value)
  if math.type(value) == "integer" then return tostring(value) end
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

local encode

-- indent: the line break before this value's closing bracket; nil: all on one line.
local function members(out, list, open, close, indent, write)
  local inner = indent and indent .. "  "
  out[#out + 1] = open
  for i, item in ipairs(list) do
    if i > 1 then out[#out + 1] = indent and "," or ", " end
    out[#out + 1] = inner
    write(item, inner)
  end
  if #list > 0 then out[#out + 1] = indent end
  out[#out + 1] = close
end

function encode(out, value, indent, seen)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = quote(value)
  elseif kind == "number" then
    out[#out + 1] = number(value)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(value)
  elseif value == nil or value == json.null then
    out[#out + 1] = "null"
  elseif kind ~= "table" then
    error("json.encode: a " .. kind .. " cannot be JSON", 0)
  elseif seen[value] then
    error("json.encode: a table contains itself", 0)
  else
    seen[value] = true
    if json.is_array(value) then
      members(out, value, "[", "]", nil, function(item) encode(out, item, nil, seen) end)
    else
      local keys = {}
      for key in pairs(value) do
        if type(key) ~= "string" then error("json.encode: a key is a " .. type(key) .. ", not a string", 0) end
        keys[#keys + 1] = key
      end
      table.sort(keys)
      members(out, keys, "{", "}", indent, function(key, inner)
        out[#out + 1] = quote(key) .. ": "
        encode(out, value[key], inner, seen)
      end)
    end
    seen[value] = nil
  end
end

-- Returns the JSON of a value. pretty: write objects on several lines.
function json.encode(value, pretty)
  local out = {}
  encode(out, value, pretty and "\n" or nil, {})
  return table.concat(out)
end

local UNESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local LITERALS = { ["true"] = true, ["false"] = false, null = json.null }
local MAX_DEPTH = 200

local function fail(text, at, message)
  local _, line = text:sub(1, at):gsub("\n", "\n")
  error({ message = ("line %d: %s"):format(line + 1, message) }, 0)
end

local function skip(text, at) return text:match("^[ \n\r\t]*()", at) end

local function unicode(text, at)
  local function unit(i) return tonumber(text:match("^\\u(%x%x%x%x)", i) or fail(text, i, "invalid \\u escape"), 16) end
  local code = unit(at)
  if code < 0xD800 or code > 0xDFFF then return utf8.char(code), at + 6 end
  local low = code < 0xDC00 and text:find("^\\u[dD][c-fC-F]", at + 6) and unit(at + 6)
  if not low then return "\u{FFFD}", at + 6 end
  return utf8.char(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 12
end

local function read_string(text, at)
  local plain, stop = text:match('^"([^"\\%c]*)"()', at)
  if plain then return plain, stop end
  local parts = {}
  at = at + 1
  while true do
    local run, next_at = text:match('^([^"\\\0-\31]*)()', at)
    parts[#parts + 1] = run
    local c = text:sub(next_at, next_at)
    if c == '"' then return table.concat(parts), next_at + 1 end
    if c ~= "\\" then fail(text, next_at, "unterminated string") end
    local escape = text:sub(next_at + 1, next_at + 1)
    if escape == "u" then
      parts[#parts + 1], at = unicode(text, next_at)
    else
      parts[#parts + 1] = UNESCAPES[escape] or fail(text, next_at, "invalid escape")
      at = next_at + 2
    end
  end
end

local read

local function read_array(text, at, depth)
  local list, n = json.array(), 0
  at = skip(text, at + 1)
  if text:sub(at, at) == "]" then return list, at + 1 end
  while true do
    n = n + 1
    list[n], at = read(text, at, depth)
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "]" then return list, at + 1 end
    if c ~= "," then fail(text, at, "expected ',' or ']'") end
    at = at + 1
  end
end

local function read_object(text, at, depth)
  local object = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "}" then return object, at + 1 end
  while true do
    at = skip(text, at)
    if text:sub(at, at) ~= '"' then fail(text, at, "expected a key in quotes") end
    local key, value
    key, at = read_string(text, at)
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then fail(text, at, "expected ':'") end
    value, at = read(text, at + 1, depth)
    if value ~= json.null then object[key] = value end
    at = skip(text, at)
    local c = text:sub(at, at)
    if c == "}" then return object, at + 1 end
    if c ~= "," then fail(text, at, "expected ',' or '}'") end
    at = at + 1
  end
end

function read(text, at, depth)
  at = skip(text, at)
  local c = text:sub(at, at)
  if c == '"' then return read_string(text, at) end
  if c == "{" or c == "[" then
    if depth == MAX_DEPTH then fail(text, at, "nested too deeply") end
    return (c == "{" and read_object or read_array)(text, at, depth + 1)
  end
  local word, stop = text:match("^(%a+)()", at)
  if word and LITERALS[word] ~= nil then return LITERALS[word], stop end
  local digits, digits_end = text:match("^(-?%d+[%d.eE+-]*)()", at)
  local value = digits and not digits:find "^-?0%d" and not (digits .. " "):find "%.%D" and tonumber(digits)
  if not value then fail(text, at, "expected a value") end
  if value == math.huge or value == -math.huge then fail(text, at, "the number is too large") end
  return value, digits_end
end

-- Returns the value of a text, or nil and a message.
function json.decode(text)
  local valid, bad = utf8.len(text)
  if not valid then return nil, ("JSON: invalid UTF-8 at byte %d"):format(bad) end
  local ok, value, at = pcall(read, text, 1, 0)
  if ok then
    at = skip(text, at)
    if at > #text then return value end
    value = select(2, pcall(fail, text, at, "unexpected text after the value"))
  end
  if type(value) ~= "table" then error(value, 0) end
  return nil, "JSON: " .. value.message
end

return json
