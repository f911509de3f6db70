-- Experiment files: JSON lines, the first of which says what was run, each further one a finished run. Lines are only
-- ever added, each on disk before the next run begins; a last line without its end was torn by a kill and counts as
-- absent.
--
-- The head
--   schema "dtrun.runs/1", experiment ("sweep", "paper main"), protocol {what all runs share}, machine, backend,
--   threads, target, draft, draft_dtype (none: left out), cache_dtype, version
-- A run
--   schema "dtrun.run/1", arm (its label: "dynatree D0=5"; plain decoding is "ar"), policy, preset (none: left out),
--   params {as given}, axes {what arm and prompt stand for in tables and figures: {chars = 200}}, set, prompt (both
--   together name one text), tokens (wanted), repeat (1..), finish_reason, prompt_tokens, stats (those of the result),
--   probability (of runs with a trace: what dt.scatter gives)
--
--   local file = assert(record.read "sweep.jsonl")        -- { head = {...}, runs = { {...}, ... } }
--   local plain = record.baseline(file.runs)
--   for _, run in ipairs(file.runs) do print(run.arm, record.speedup(run, plain(run))) end
local core = require "dt.core"
local json = require "dt.json"

local record = { BASELINE = "ar" }

-- What a line must have: name -> type; "?": may be absent.
local HEAD = { experiment = "string", protocol = "table", machine = "string", backend = "string", threads = "integer",
               target = "string", draft = "string?", draft_dtype = "string?", cache_dtype = "string?",
               version = "string" }
local RUN = { arm = "string", policy = "string", preset = "string?", params = "table", axes = "table", set = "string",
              prompt = "string", tokens = "integer", ["repeat"] = "integer", finish_reason = "string",
              prompt_tokens = "integer", stats = "table" }
local STATS = { tokens_per_second = "number", output_hash = "string", iterations = "integer" }

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- nil, or what is wrong with the fields of t.
local function mistake(t, fields)
  for _, key in ipairs(sorted_keys(fields)) do
    local kind, value = fields[key], t[key]
    local optional = kind:sub(-1) == "?"
    if optional then kind = kind:sub(1, -2) end
    local fits = type(value) == kind or kind == "integer" and math.type(value) == "integer"
    if not fits and not (optional and value == nil) then
      return value == nil and "it has no " .. key
        or ("%s is not %s %s"):format(key, kind == "integer" and "an" or "a", kind)
    end
  end
end

-- nil, or what is wrong with a decoded line.
local function line_mistake(t, is_head)
  local schema = is_head and "dtrun.runs/1" or "dtrun.run/1"
  if type(t) ~= "table" or t.schema ~= schema then return ("its schema is not %s"):format(schema) end
  return mistake(t, is_head and HEAD or RUN) or not is_head and mistake(t.stats, STATS) or nil
end

-- The text of a file, or nil, a message and a code. A device has none.
local function contents(path)
  local file, message, code = io.open(path, "rb")
  if not file then return nil, message, code end
  local size, text
  size, message = file:seek "end"
  if size and size > 0 then
    file:seek "set"
    text, message = file:read "a"
  end
  file:close()
  if text or size == 0 then return text or "" end
  return nil, path .. ": " .. message
end

local ENOENT = 2

-- { head =, runs =, whole = bytes up to the end of the last whole line }; head is nil where there is no line.
local function parse(path, text)
  local file, number = { runs = {}, whole = 0 }, 0
  for line, stop in text:gmatch "([^\n]*)\n()" do
    number = number + 1
    local value, message = json.decode(line)
    message = not value and message:gsub("line 1: ", "") or value and line_mistake(value, number == 1)
    if message then return nil, ("%s:%d: not a line of an experiment: %s"):format(path, number, message) end
    if number == 1 then file.head = value else file.runs[number - 1] = value end
    file.whole = stop - 1
  end
  return file
end

-- { head =, runs = } of a finished or unfinished experiment, or nil and a message.
function record.read(path)
  local text, message = contents(path)
  if not text then return nil, message end
  local file
  file, message = parse(path, text)
  if file and not file.head then return nil, path .. ": empty, expected the lines of an experiment" end
  return file, message
end

-- nil, or how two heads differ; the protocol is compared key by key.
local function difference(old, new)
  local all = {}
  for key in pairs(old) do all[key] = true end
  for key in pairs(new) do all[key] = true end
  for _, key in ipairs(sorted_keys(all)) do
    local a, b = old[key], new[key]
    local found
    if key == "protocol" then
      found = difference(a, b)
    elseif json.encode(a) ~= json.encode(b) then
      found = ("made with %s = %s, not %s"):format(key, json.encode(a), json.encode(b))
    end
    if found then return found end
  end
end

local File = {}
File.__index = File

-- Adds a finished run. It is on disk when this returns true; else nil, a message, "device", and the file is as it was.
function File:append(run)
  run.schema = "dtrun.run/1"
  local message = line_mistake(run)
  if message then error("record: a run: " .. message, 2) end
  if self.path then
    local ok
    ok, message = core.append(self.path, json.encode(run))
    if not ok then return nil, message, "device" end
  end
  self.runs[#self.runs + 1] = run
  return true
end

-- The file at path to add runs to: a new one, or one with the same head, whose torn line is cut off. With path = nil
-- the runs are kept in memory only. nil and a message where the file cannot be gone on with; with "device" behind them
-- where the disk takes no more.
function record.open(path, head)
  head.schema = "dtrun.runs/1"
  local message = line_mistake(head, true)
  if message then error("record: the head: " .. message, 2) end
  if not path then return setmetatable({ head = head, runs = {} }, File) end
  local text, code
  text, message, code = contents(path)
  if not text and code ~= ENOENT then return nil, message end
  text = text or ""
  local file
  file, message = parse(path, text)
  if not file then return nil, message end
  if file.head then
    local differs = difference(file.head, head)
    if differs then
      return nil, ("%s: %s: give the same options to go on with it, or another file"):format(path, differs)
    end
  end
  local ok = true
  if file.whole < #text then ok, message = core.truncate(path, file.whole) end
  if ok and not file.head then ok, message = core.append(path, json.encode(head)) end
  if not ok then return nil, message, "device" end
  return setmetatable({ path = path, head = head, runs = file.runs }, File)
end

-- What a run is compared with plain decoding by: the same text and length.
function record.case(run) return ("%s\0%s\0%d"):format(run.set, run.prompt, run.tokens) end

-- A function from a run to the plain run that it is compared with: of the same text and length, and of the same repeat
-- where there is one, else the first; nil where plain decoding is missing.
function record.baseline(runs, arm)
  local plain = {}
  for _, run in ipairs(runs) do
    if run.arm == (arm or record.BASELINE) then
      local case = record.case(run)
      plain[case] = plain[case] or {}
      plain[case][run["repeat"]] = run
      plain[case].first = plain[case].first or run
    end
  end
  return function(run)
    local found = plain[record.case(run)]
    return found and (found[run["repeat"]] or found.first)
  end
end

-- How many times as fast as plain decoding; nil where there is none to compare with.
function record.speedup(run, plain)
  return plain and run.stats.tokens_per_second / plain.stats.tokens_per_second
end

return record
