-- Reads traces of runs (schema dtrun.trace/1, policies/README.md).
local json = require "dt.json"

local trace = {}

local function is_text(value) return type(value) == "string" end

local function is_optional(value, kind) return value == nil or (math.type(value) or type(value)) == kind end

local function is_number(value) return value == nil or type(value) == "number" end

local function is_head(entry)
  if entry.schema ~= "dtrun.trace/1" or not is_text(entry.prompt) or not is_text(entry.policy) then return false end
  for _, value in pairs(type(entry.params) == "table" and entry.params or {}) do
    if type(value) == "table" then return false end
  end
  return is_optional(entry.params, "table") and is_optional(entry.target, "string")
    and is_optional(entry.draft, "string") and is_optional(entry.backend, "string")
    and is_optional(entry.threads, "integer") and is_optional(entry.sequence, "integer")
end

local function is_ending(entry)
  return is_text(entry.finish_reason) and math.type(entry.tokens) == "integer" and type(entry.total_ms) == "number"
end

local function is_token(t) return type(t) == "table" and is_text(t.text) and math.type(t.token) == "integer" end

-- Returns the mistake in a line about an iteration, or nil.
function trace.flaw(entry)
  if type(entry) ~= "table" then return "not an object" end
  if type(entry.nodes) ~= "table" or #entry.nodes == 0 then return "no nodes" end
  for i, node in ipairs(entry.nodes) do
    local parent = type(node) == "table" and node.parent
    if not is_token(node) or node.id ~= i - 1 then return ("node %d is not a valid node"):format(i - 1) end
    if i == 1 and parent then return "node 0 has a parent" end
    if i > 1 and (math.type(parent) ~= "integer" or parent < 0 or parent >= node.id or type(node.p) ~= "number") then
      return ("node %d has no parent before it, or no p"):format(node.id)
    end
    if not (is_number(node.logp) and is_number(node.confidence) and is_number(node.entropy)) then
      return ("node %d: logp, confidence or entropy is not a number"):format(node.id)
    end
    if not (is_optional(node.kept, "boolean") and is_optional(node.accepted, "boolean")
        and is_optional(node.copied, "boolean")) then
      return ("node %d: kept, accepted or copied is not true or false"):format(node.id)
    end
    if not is_optional(node.tag, "string") then return ("node %d: tag is not a string"):format(node.id) end
  end
  if not is_token(entry.bonus) then return "no bonus token" end
  if type(entry.committed) ~= "table" then return "no committed tokens" end
  for _, token in ipairs(entry.committed) do
    if not is_token(token) or not is_text(token.origin) then return "a committed token without text or origin" end
  end
  for _, part in ipairs { "draft", "verify", "commit", "policy" } do
    if type(entry.ms) ~= "table" or type(entry.ms[part]) ~= "number" then return "no ms." .. part end
  end
  if not (is_number(entry.iteration) and is_number(entry.rollbacks)) then
    return "iteration or rollbacks is not a number"
  end
  if entry.log ~= nil and type(entry.log) ~= "table" then return "log is not an object" end
  for _, value in pairs(entry.log or {}) do
    if type(value) ~= "number" then return "log has a value that is not a number" end
  end
end

-- Adds a line's entry to its sequence in `found`; returns the mistake in it, or nil.
local function take(found, entry)
  if not is_optional(entry.sequence, "integer") then return "sequence is not an integer" end
  if entry.schema then
    if not is_head(entry) then return "not a valid head" end
    found.sequences[#found.sequences + 1] = entry.sequence
    if entry.sequence == found.sequence then found.head = entry end
  elseif entry.finish_reason then
    if not is_ending(entry) then return "an end without tokens, total_ms or finish_reason" end
    if entry.sequence == found.sequence then found.ending = entry end
  else
    local wrong = trace.flaw(entry)
    if wrong then return wrong end
    if entry.sequence == found.sequence then table.insert(found.iterations, entry) end
  end
end

-- Reads the sequence with this number from a trace, or the first one. Returns {head =, iterations = {..}, ending = or
-- nil, sequence = its number, sequences = {all numbers}}, where a trace of a single text has no numbers, and a message
-- if lines had to be left out; or nil and a message.
function trace.read(path, sequence)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local found, number, left_out, first = { iterations = {}, sequences = {} }, 0, 0, nil
  for line in file:lines() do
    number = number + 1
    local entry, wrong = json.decode(line)
    if type(entry) ~= "table" then
      wrong = wrong or "not an object"
    else
      if number == 1 then
        if not is_head(entry) then break end
        found.is_trace, found.sequence = true, sequence or entry.sequence
      end
      wrong = take(found, entry)
    end
    if wrong then
      left_out, first = left_out + 1, first or ("line %d: %s"):format(number, wrong:gsub("^JSON: line 1: ", ""))
    end
  end
  file:close()
  if not found.is_trace then return nil, path .. ": not a trace: its first line is not one of schema dtrun.trace/1" end
  if not found.head then
    return nil, ("%s: there is no sequence %d (%s)"):format(path, sequence,
      #found.sequences > 0 and "it has: " .. table.concat(found.sequences, ", ") or "the trace has one text only")
  end
  if #found.iterations == 0 then return nil, path .. ": no complete iteration" .. (first and ", " .. first or "") end
  if first then return found, ("%s: %d of %d lines left out, %s"):format(path, left_out, number, first) end
  return found
end

return trace
