-- Checks a result file against the schema dtrun.result/1: dtrun run result.lua FILE [KEY=VALUE ...]
-- KEY is a path like stats.drafted; the value of a list is its length.
local dt = require "dt"

local file = assert(io.open(arg[1], "rb"))
local r = assert(dt.json.decode(file:read("a")))
file:close()

local function need(value, kind, name)
  local got = math.type(value) or type(value)
  local fits = got == kind or kind == "number" and type(value) == "number"
  if not fits then error(("%s: expected %s, found %s"):format(name, kind, got), 0) end
end

local function is_null(value) return type(value) ~= "number" end

for name, kind in pairs {
  tokens = "table", text = "string", finish_reason = "string", prompt_tokens = "integer", prompt_ids = "table",
  policy = "string", source = "string", params = "table",
  seed = "string", backend = "string", threads = "integer", target = "string",
  version = "string", stats = "table",
} do need(r[name], kind, name) end
assert(r.schema == "dtrun.result/1", "schema")

local stats = r.stats
for name, kind in pairs {
  tokens_per_second = "number", load_ms = "number", ttft_ms = "number", tpot_ms = "number", iterations = "integer",
  tokens_per_iteration = "number", path_length = "number", drafted = "integer", accepted = "integer",
  accepted_by_depth = "table", tree_nodes_mean = "number", tree_depth_mean = "number", time_ms = "table",
  output_hash = "string",
} do
  -- a run of one token has no time per token after the first
  if not (name == "tpot_ms" and #r.tokens < 2) then need(stats[name], kind, "stats." .. name) end
end
for _, name in ipairs { "prompt", "draft", "verify", "commit", "policy", "other" } do
  need(stats.time_ms[name], "number", "stats.time_ms." .. name)
  assert(stats.time_ms[name] >= 0, "time_ms." .. name .. " is negative")
end
assert(stats.peak_memory_bytes ~= nil, "stats.peak_memory_bytes")
assert(#stats.output_hash == 16 and stats.output_hash:match("^%x+$"), "stats.output_hash: 16 hexadecimal digits")

assert(#r.prompt_ids == r.prompt_tokens, "prompt_tokens counts prompt_ids")
assert(stats.accepted <= stats.drafted, "more accepted than drafted")
if stats.drafted == 0 then assert(is_null(stats.acceptance_rate), "acceptance_rate of nothing drafted is null")
else assert(math.abs(stats.acceptance_rate - stats.accepted / stats.drafted) < 1e-6, "acceptance_rate") end
if stats.iterations > 0 then
  assert(math.abs(stats.tokens_per_iteration * stats.iterations - #r.tokens) < 1e-3, "tokens_per_iteration")
end

for i = 2, #arg do
  local path, expected = arg[i]:match("^([%w_.]+)=(.*)$")
  local value = r
  for key in path:gmatch("[^.]+") do value = value[tonumber(key) or key] end
  if type(value) == "table" then value = #value end
  value = tostring(value)
  if value ~= expected then error(("%s: expected %s, found %s"):format(path, expected, value), 0) end
end
