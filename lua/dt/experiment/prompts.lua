-- The texts of experiments: files and JSON-lines sets, each text under a name of its own.
local json = require "dt.json"
local params = require "dt.policy.params"

local prompts = {}

local KEYS = { files = true, sets = true, chars = true }

-- Returns the first n characters of a text, or nil and the mistake in it.
function prompts.cut(text, n)
  local length, bad = utf8.len(text)
  if not length then return nil, ("invalid UTF-8 at byte %d"):format(bad) end
  if length == 0 then return nil, "empty, expected some text" end
  return n and n < length and text:sub(1, utf8.offset(text, n + 1) - 1) or text
end

local function read_file(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local text
  text, message = file:read "a"
  file:close()
  return text, not text and path .. ": " .. message or nil
end

-- "prompts/novels/01.txt" is 01 of the set novels; without a folder the set is "files".
local function names_of(path)
  local set = path:match "([^/]+)/[^/]+$" or "files"
  local name = path:match "([^/]+)$" or path
  return set, set .. "/" .. (name:match "^(.+)%.[^.]*$" or name)
end

-- Adds a prompt that was found at `where`. Returns nil and a message if its name is taken.
local function add(list, where, prompt)
  local other = list.known[prompt.name]
  if other then return nil, ("%s: the prompt is named %s, as is %s"):format(where, prompt.name, other) end
  list.known[prompt.name], list[#list + 1] = where, prompt
  return true
end

-- Adds the prompts of a JSON-lines file of {"id": .., "prompt": ..}. Without an id the name is the line's number. Other
-- keys are ignored.
local function add_set(list, path, chars)
  local text, message = read_file(path)
  if not text then return nil, message end
  local set, number = path:match "([^/]+)$":gsub("%.jsonl?$", ""), 0
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    local where = ("%s:%d"):format(path, number)
    local ok, at = utf8.len(line)
    if not ok then return nil, ("%s: invalid UTF-8 at byte %d"):format(where, at) end
    local entry = json.decode(line)
    local id = type(entry) == "table" and entry.id or number
    if type(entry) ~= "table" or type(entry.prompt) ~= "string" or not (type(id) == "string" or
       math.type(id) == "integer") then
      return nil, where .. ': expected {"id": .., "prompt": "..."} on one line; "id" may be left out'
    end
    local cut
    cut, message = prompts.cut(entry.prompt, chars)
    if not cut then return nil, ("%s: %s"):format(where, message) end
    ok, message = add(list, where, { set = set, name = ("%s/%s"):format(set, id), text = cut })
    if not ok then return nil, message end
  end
  return true
end

-- Reads the texts of prompt files and of JSON-lines sets, each cut to its first `chars` characters. Returns nil and a
-- message after a failure.
function prompts.read(t)
  params.check_keys(t, KEYS, "experiment.prompts", 2)
  local list = { known = {} } -- name -> the place where it was found
  for _, path in ipairs(t.files or {}) do
    local text, message = read_file(path)
    if not text then return nil, message end
    text, message = prompts.cut(text, t.chars)
    if not text then return nil, ("%s: %s"):format(path, message) end
    local set, name = names_of(path)
    local ok
    ok, message = add(list, path, { set = set, name = name, text = text })
    if not ok then return nil, message end
  end
  for _, path in ipairs(t.sets or {}) do
    local ok, message = add_set(list, path, t.chars)
    if not ok then return nil, message end
  end
  list.known = nil
  return list
end

return prompts
