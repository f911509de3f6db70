-- Typed parameters, for dt.policy and dt.args. They are declared as an ordered list of {name, default, type=, min=,
-- max=, one_of=, doc=, tune=}, set from text (--set NAME=VALUE) or from values, checked, and described. The bounds of a
-- list are those of its numbers, which must be integers if those of the default are.
--
-- Policies cannot interfere with this: the functions called here are stored in locals when this file is loaded, and
-- what a policy passes is read only once, and without metamethods.
local error, ipairs, next, rawget, rawlen = error, ipairs, next, rawget, rawlen
local tonumber, tostring, type = tonumber, tostring, type
local concat, format, sort = table.concat, string.format, table.sort
local huge, kind_of, min, tointeger = math.huge, math.type, math.min, math.tointeger
local byte, sub = string.byte, string.sub

local params = {}

local KEYS = { [1] = true, [2] = true, min = true, max = true, one_of = true, type = true, doc = true,
               tune = true }
local MOST = 64 -- maximum number of parameters
local LONGEST = 64 -- maximum number of numbers in a list
local TYPES = { integer = true, number = true, boolean = true, string = true, list = true }
local ARTICLE = { integer = "an integer", number = "a number", boolean = "true or false", string = "a string",
                  list = "a list of numbers, such as 3,2,1" }

local function sorted_keys(t)
  local keys = {}
  for key in next, t do keys[#keys + 1] = tostring(key) end
  sort(keys)
  return keys
end

-- A copy without the metatable.
function params.copied(t)
  local copy = {}
  for key, value in next, t do copy[key] = value end
  return copy
end

-- Raises, `level` functions up, unless every key of t is one of `known` (a set).
function params.check_keys(t, known, what, level)
  for key in next, t do
    if not known[key] then
      local names = {}
      for _, name in ipairs(sorted_keys(known)) do
        if not tonumber(name) then names[#names + 1] = name end
      end
      error(format("%s: unknown key '%s' (known: %s)", what, tostring(key), concat(names, ", ")), level + 1)
    end
  end
end

-- The exact text of a value, as for --set and in JSON (strings: without quotes).
function params.text(value)
  if type(value) == "table" then
    local texts = {}
    for i = 1, min(rawlen(value), LONGEST + 1) do texts[i] = params.text(rawget(value, i)) end
    return concat(texts, ",")
  end
  if kind_of(value) ~= "float" then return tostring(value) end
  local short = format("%.14g", value)
  return tonumber(short) == value and short or format("%.17g", value)
end

function params.range(p)
  if p.one_of then
    local values = {}
    for i, value in ipairs(p.one_of) do values[i] = params.text(value) end
    return "one of " .. concat(values, ", ")
  end
  if not p.min and not p.max then return "" end
  local each = p.type == "list" and "each " or ""
  return each .. (p.min and params.text(p.min) or "") .. ".." .. (p.max and params.text(p.max) or "")
end

-- Returns a checked copy of a list that is a value of p, or nil and a message.
local function check_list(p, list)
  local n, checked = type(list) == "table" and rawlen(list) or 0, {}
  if n < 1 then return nil, format("%s = %s is not %s", p.name, params.text(list), ARTICLE.list) end
  if n > LONGEST then return nil, format("%s has %d numbers, more than %d", p.name, n, LONGEST) end
  local each = { name = p.name .. ": " .. params.text(list), type = p.of or "number", min = p.min, max = p.max }
  for i = 1, n do
    local value, message = params.check(each, rawget(list, i))
    if message then return nil, message end
    checked[i] = value
  end
  return checked
end

-- Returns the value converted to p's type, or nil and a message.
function params.check(p, value)
  local kind, given = p.type, value
  if kind == "list" then return check_list(p, value) end
  if kind == "integer" then
    value = kind_of(value) and tointeger(value)
  elseif kind == "number" then
    value = kind_of(value) and value + 0.0
    if value and (value ~= value or value == huge or value == -huge) then value = nil end
  elseif type(value) ~= kind then
    value = nil
  end
  if value == nil then
    return nil, format("%s = %s is not %s", p.name, params.text(given), ARTICLE[kind])
  end
  if (p.min and value < p.min) or (p.max and value > p.max) then
    return nil, format("%s = %s is out of range: %s", p.name, params.text(value), params.range(p))
  end
  if p.one_of then
    for _, allowed in ipairs(p.one_of) do
      if value == allowed then return value end
    end
    return nil, format("%s = %s is not %s", p.name, params.text(value), params.range(p))
  end
  return value
end

-- Parses "3,2,1" as a list; nil: it is not one.
local function parse_list(text)
  local list, from = {}, 1
  while true do
    local past = from
    while past <= #text and byte(text, past) ~= 44 do past = past + 1 end -- a comma
    local value = tonumber(sub(text, from, past - 1))
    if not value or #list > LONGEST then return nil end
    list[#list + 1] = value
    if past > #text then return list end
    from = past + 1
  end
end

-- Returns the value of p that a text represents, or nil and a message.
function params.parse(p, text)
  local value
  if p.type == "list" then
    value = parse_list(text)
  elseif p.type == "string" then
    value = text
  elseif p.type == "boolean" then
    if text == "true" then value = true elseif text == "false" then value = false end
  else
    value = tonumber(text)
  end
  if value == nil then return nil, format("%s = %s is not %s", p.name, text, ARTICLE[p.type]) end
  return params.check(p, value)
end

-- The values that `dtrun run tune` tries: {low, high} for a number; true for all values of another type; false for
-- none. If `tune` is not given, it tries all allowed values.
local function search_space(p, given, fail)
  local number = p.type == "integer" or p.type == "number"
  if given == nil then
    if number and not p.one_of then return p.min and p.max and { p.min, p.max } or false end
    return p.type == "boolean" or p.one_of ~= nil
  end
  if given == false then return false end
  local low, high
  if type(given) == "table" and number and not p.one_of then
    low, high = rawget(given, 1), rawget(given, 2)
  end
  if not (params.check(p, low) and params.check(p, high)) or low >= high then
    fail("%s: tune is not false or, for a number, {low, high} within its range", p.name)
  end
  return { low, high }
end

-- A checked copy of one declaration; raises `level` functions up.
local function declare(entry, what, level)
  local function fail(...) error(what .. ": " .. format(...), level + 3) end
  if type(entry) ~= "table" then fail("a parameter is a %s, not a table {name, default, ...}", type(entry)) end
  entry = params.copied(entry)
  local name, default = entry[1], entry[2]
  if type(name) ~= "string" or name == "" then fail("a parameter's name is a %s, not a string", type(name)) end
  params.check_keys(entry, KEYS, what .. ": " .. name, level + 2)
  local kind = entry.type
  if kind == nil then
    kind = kind_of(default) or type(default)
    if kind == "float" then kind = "number" end
    if kind == "table" then kind = "list" end
    if default == nil then fail("%s: a nil default needs type=", name) end
  end
  if not TYPES[kind] then
    fail("%s: type '%s' is not one of boolean, integer, list, number, string", name, tostring(kind))
  end
  if entry.doc ~= nil and type(entry.doc) ~= "string" then fail("%s: doc is a %s", name, type(entry.doc)) end
  local p = { name = name, type = kind, doc = entry.doc or "" }
  for _, bound in ipairs { "min", "max" } do
    local value = entry[bound]
    if value ~= nil then
      if kind == "boolean" or kind == "string" then fail("%s: %s is for numbers", name, bound) end
      if not kind_of(value) then fail("%s: %s is a %s", name, bound, type(value)) end
      p[bound] = value
    end
  end
  if kind == "list" then
    p.of = "integer"
    if type(default) ~= "table" then fail("%s: a list needs a default, such as { 3, 2, 1 }", name) end
    for i = 1, min(rawlen(default), LONGEST) do
      if kind_of(rawget(default, i)) ~= "integer" then p.of = "number" end
    end
  end
  if entry.one_of ~= nil then
    if kind == "list" then fail("%s: one_of is not for lists", name) end
    if type(entry.one_of) ~= "table" or rawlen(entry.one_of) == 0 then fail("%s: one_of is not a list", name) end
    local values = {}
    for i = 1, rawlen(entry.one_of) do
      local value, message = params.check(p, rawget(entry.one_of, i))
      if message then fail("one_of: %s", message) end
      values[i] = value
    end
    p.one_of = values
  end
  if default ~= nil then
    local value, message = params.check(p, default)
    if message then fail("%s", message) end
    p.default = value
  end
  p.tune = search_space(p, entry.tune, fail)
  return p
end

-- A checked copy of a list of declarations, also indexed by name; raises `level` functions up.
function params.declare(list, what, level)
  if type(list) ~= "table" then error(format("%s: params is a %s, not a list", what, type(list)), level + 1) end
  local n = rawlen(list)
  if n > MOST then error(format("%s: %d parameters are more than %d", what, n, MOST), level + 1) end
  local declared = {}
  for i = 1, n do
    local p = declare(rawget(list, i), what, level)
    if declared[p.name] then error(format("%s: two parameters named %s", what, p.name), level + 1) end
    declared[i], declared[p.name] = p, p
  end
  for key in next, list do
    if kind_of(key) ~= "integer" or key < 1 or key > #declared then
      error(format("%s: params is a list of {name, default, ...}, with no key '%s'", what, tostring(key)), level + 1)
    end
  end
  return declared
end

-- A declaration with its value, as strings and lists of strings that the host copies.
function params.describe(p, value)
  local function texts(list)
    local result = {}
    for i, item in ipairs(list) do result[i] = params.text(item) end
    return result
  end
  local space = p.tune
  if space == true then space = p.one_of or { true, false } end
  return { name = p.name, doc = p.doc, type = p.type, range = params.range(p),
           value = value ~= nil and params.text(value) or nil, min = p.min and params.text(p.min),
           max = p.max and params.text(p.max), one_of = texts(p.one_of or {}), tune = texts(space or {}) }
end

-- Converts the result of describe back to a declaration as params.check takes it.
function params.described(d)
  local function value(text) if text ~= nil then return (params.parse({ name = d.name, type = d.type }, text)) end end
  local function values(list)
    local result = {}
    for i, text in ipairs(list) do result[i] = value(text) end
    return #result > 0 and result
  end
  local function bound(text) return text ~= nil and tonumber(text) or nil end
  return { name = d.name, doc = d.doc, type = d.type, range = d.range, value = value(d.value), min = bound(d.min),
           max = bound(d.max), one_of = values(d.one_of) or nil, tune = values(d.tune) }
end

-- Returns the declaration with this name, or nil and a message that lists all names.
function params.find(declared, name)
  local p = type(name) == "string" and declared[name]
  if p then return p end
  local names = {}
  for i, known in ipairs(declared) do names[i] = known.name end
  return nil, format("no parameter '%s' (%s)", tostring(name),
                     #names > 0 and "it has: " .. concat(names, ", ") or "it has none")
end

-- Returns {name = value}, checked against the declarations, or nil and a message.
function params.check_values(declared, values)
  local checked = {}
  for name, value in next, values do
    local p, message = params.find(declared, name)
    if not p then return nil, message end
    checked[name], message = params.check(p, value)
    if message then return nil, message end
  end
  return checked
end

return params
