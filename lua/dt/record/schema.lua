-- The fields of a line in an experiment's file; dt.record documents their meaning.
local core = require "dt.core"
local json = require "dt.json"

local schema = { HEAD = "dtrun.runs/1", RUN = "dtrun.run/1", FAILURE = "dtrun.failure/1" }

-- Numbers lie within MOST, and divisors are at least LEAST, so that sums, squares and ratios of them are finite.
local MOST, LEAST = 1e15, 1e-9

local function is_number(x) return math.type(x) and x >= -MOST and x <= MOST end
local function is_object(x) return type(x) == "table" and not json.is_array(x) end
local function is_plain(x) return type(x) == "string" or type(x) == "boolean" or is_number(x) end

local function every(t, fits)
  for _, value in pairs(t) do
    if not fits(value) then return false end
  end
  return true
end

local function is_list(fits)
  return function(x) return type(x) == "table" and (next(x) == nil or json.is_array(x)) and every(x, fits) end
end

-- Kinds of fields: kind -> its name in messages, and a function that checks whether a value is of that kind.
local KINDS = {
  string = { "a string", function(x) return type(x) == "string" end },
  boolean = { "true or false", function(x) return type(x) == "boolean" end },
  integer = { "an integer from 1 to 1e15", function(x) return math.type(x) == "integer" and x >= 1 and x <= MOST end },
  number = { "a number from -1e15 to 1e15", is_number },
  positive = { "a number from 1e-9 to 1e15", function(x) return is_number(x) and x >= LEAST end },
  object = { "an object", is_object },
  settings = { "an object of strings, numbers and booleans", function(x)
    return is_object(x) and every(x, is_plain)
  end },
  protocol = { "an object of strings, numbers, booleans and lists of these", function(x)
    return is_object(x) and every(x, function(value) return is_plain(value) or is_list(is_plain)(value) end)
  end },
  depths = { "a list of objects with a number 'accepted'",
             is_list(function(at) return is_object(at) and is_number(at.accepted) end) },
  counts = { "an object of integers from 1 to 1e15", function(x)
    return is_object(x) and every(x, function(n) return math.type(n) == "integer" and n >= 1 and n <= MOST end)
  end },
  tags = { "an object of objects with numbers verified, decided, expected and accepted", function(x)
    return is_object(x) and every(x, function(tag)
      return is_object(tag) and is_number(tag.verified) and is_number(tag.decided) and is_number(tag.expected)
        and is_number(tag.accepted)
    end)
  end },
  log = { "an object of objects with numbers n and mean", function(x)
    return is_object(x) and every(x, function(of)
      return is_object(of) and is_number(of.n) and of.n >= 1 and is_number(of.mean)
    end)
  end },
  turns = { "a list of objects with text, lengths, ms and ended", is_list(function(turn)
    return is_object(turn) and type(turn.text) == "string" and is_list(is_number)(turn.lengths)
      and is_number(turn.ms) and turn.ms >= LEAST and math.type(turn.ended) == "integer"
  end) },
  question = { "an object with id and category", function(x)
    return is_object(x) and (type(x.id) == "string" or math.type(x.id) == "integer") and type(x.category) == "string"
  end },
  bins = { "a list of objects with numbers sum, n and accepted", is_list(function(bin)
    return is_object(bin) and is_number(bin.sum) and is_number(bin.n) and is_number(bin.accepted)
  end) },
}

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Converts name -> kind ("?": may be absent) to a list of the fields of a line, sorted by name. It is computed once,
-- not for each line.
local function fields(kinds)
  local list = {}
  for i, name in ipairs(sorted_keys(kinds)) do
    local kind, mark = kinds[name]:match "^(%a+)(%??)$"
    local what, fits = table.unpack(KINDS[kind])
    list[i] = { name = name, what = what, fits = fits, optional = mark == "?" }
  end
  return list
end

local head = {
  experiment = "string", protocol = "protocol", machine = "string", backend = "string", threads = "integer",
  target = "string", draft = "string?", version = "string", commit = "string?", build = "string?",
  target_hash = "string?", draft_hash = "string?", began = "string?", shard = "string?",
  settings = "counts?",
}
for _, name in ipairs(core.facts) do head[name] = "string?" end
local HEAD, PROTOCOL = fields(head), fields { reference = "string?" }
local TIMES = fields {
  prompt = "number", draft = "number", verify = "number", commit = "number", policy = "number", other = "number",
}
local MEMORY = fields { host = "positive", device = "positive?", weights = "number", caches = "number" }
local STATS = fields {
  tokens_per_second = "positive", output_hash = "string", iterations = "integer", load_ms = "number?",
  ttft_ms = "number?", tpot_ms = "number?", tokens_per_iteration = "positive?", path_length = "number?",
  drafted = "number?", accepted = "number?", acceptance_rate = "number?", tree_nodes_mean = "number?",
  tree_depth_mean = "number?", accepted_by_depth = "depths?", tags = "tags?",
  log = "log?",
}
local RUN = fields {
  arm = "string", policy = "string", source = "string?", preset = "string?", window = "string?", params = "settings",
  axes = "settings", set = "string", prompt = "string", tokens = "integer", ["repeat"] = "integer",
  finish_reason = "string", prompt_tokens = "integer", costs = "string?", stats = "object", tries = "integer?",
  disturbed = "string?", probability = "bins?", bound = "boolean?", question = "question?", turns = "turns?",
  node = "string?", job = "string?", cores = "string?", shard = "string?",
}
local AXES = fields { reasoning = "string?", sampling = "string?", study = "string?" }
local FAILURE = fields {
  arm = "string", policy = "string", source = "string?", set = "string", prompt = "string", tokens = "integer",
  ["repeat"] = "integer", error = "string", node = "string?", job = "string?", cores = "string?", shard = "string?",
}

-- Returns the mistake in the fields of t, or nil. name: prefix of the fields in messages ("stats." or "").
local function mistake(t, list, name)
  if not is_object(t) then return ("%s is not an object"):format(name:sub(1, -2)) end
  for _, field in ipairs(list) do
    local value = t[field.name]
    if value == nil and not field.optional then return ("it has no %s%s"):format(name, field.name) end
    if value ~= nil and not field.fits(value) then return ("%s%s is not %s"):format(name, field.name, field.what) end
  end
end

local function stats_mistake(stats)
  return mistake(stats, STATS, "stats.") or stats.time_ms and mistake(stats.time_ms, TIMES, "stats.time_ms.")
    or stats.peak_memory_bytes and mistake(stats.peak_memory_bytes, MEMORY, "stats.peak_memory_bytes.") or nil
end

-- Returns the mistake in a decoded line, or nil.
function schema.mistake(t, is_head)
  if type(t) == "table" and t.schema == schema.FAILURE and not is_head then return mistake(t, FAILURE, "") end
  local expected = is_head and schema.HEAD or schema.RUN
  if type(t) ~= "table" or t.schema ~= expected then return ("its schema is not %s"):format(expected) end
  if is_head then return mistake(t, HEAD, "") or mistake(t.protocol, PROTOCOL, "protocol.") end
  return mistake(t, RUN, "") or mistake(t.axes, AXES, "axes.") or stats_mistake(t.stats)
end

schema.is_object, schema.sorted_keys = is_object, sorted_keys

return schema
