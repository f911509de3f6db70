-- The questions of published benchmarks, as prompts of dt.experiment. Each is a conversation with one or more turns.
--
--   local list = questions.read("data/spec_bench", papers.spec_bench.questions, 2)   -- two of each category
--   list[1]   -- { set = "mt_bench", name = "writing/81", turns = {..}, question = { id = 81, category = "writing" } }
--
-- A benchmark is { file = name of its file in a folder, categories = { category = name of the table's row } }. The file
-- is JSON lines of {"question_id": 81, "category": "writing", "turns": ["..", ".."]}, as in Spec-Bench; the turns may
-- also be "messages": [{"role": "user", "content": ".."}, ..], as prepared files of SPEED-Bench have them. Other fields
-- are ignored.
local chat = require "dt.api.chat"
local json = require "dt.json"

local questions = {}

-- SPEED-Bench as published has this text in place of turns that its prepare script has to fetch.
local UNPREPARED = "FULL BENCHMARK DATA"

-- Opens the benchmark's file: `path` itself, or in the folder `path`. Returns its text and path; or nil and a message.
local function contents(path, name)
  for _, each in ipairs { path:gsub("/+$", "") .. "/" .. name, path } do
    local file = io.open(each, "rb")
    local text = file and file:read "a"
    if file then file:close() end
    if text then return text, each end
  end
  return nil, ("--data %s: expected a folder with %s, or such a file"):format(path, name)
end

local function is_id(x) return math.type(x) == "integer" or type(x) == "string" and x ~= "" end

-- Returns the turns of a decoded line; or nil and the mistake in them.
local function turns_of(entry)
  local list, turns = entry.turns or entry.messages, {}
  if type(list) ~= "table" or not list[1] then return nil, 'no "turns": expected a list of one or more texts' end
  for i, turn in ipairs(list) do
    if type(turn) == "table" and turn.role == "user" then turn = turn.content end
    if type(turn) ~= "string" or not turn:find "%S" then
      return nil, ("turn %d is not a text or a message of the user"):format(i)
    end
    if turn:sub(1, #UNPREPARED) == UNPREPARED then
      return nil, ("turn %d is a placeholder: run the benchmark's own prepare script first"):format(i)
    end
    turns[i] = turn
  end
  return turns
end

local function names_of(categories)
  local list = {}
  for category in pairs(categories) do list[#list + 1] = category end
  table.sort(list)
  return table.concat(list, ", ")
end

-- Returns the question of a line; or nil and the mistake in it.
local function parse(line, benchmark)
  local entry, message = json.decode(line)
  if not entry then return nil, (message:gsub("line 1: ", "")) end
  if type(entry) ~= "table" then return nil, "expected an object" end
  local id, category = entry.question_id, entry.category
  if not is_id(id) then return nil, '"question_id" is not an integer or a text' end
  local set = type(category) == "string" and benchmark.categories[category]
  if not set then
    return nil, ('"category" is %s, expected one of %s'):format(json.encode(category),
      names_of(benchmark.categories))
  end
  local turns
  turns, message = turns_of(entry)
  if not turns then return nil, message end
  return { set = set, name = ("%s/%s"):format(category, id), turns = turns,
           question = { id = id, category = category } }
end

-- At most n questions of each category, spread evenly over the file, in the order of the file.
local function some(list, n)
  local of, seen, chosen = {}, {}, {}
  for _, each in ipairs(list) do
    local category = each.question.category
    of[category] = (of[category] or 0) + 1
  end
  for _, each in ipairs(list) do
    local category = each.question.category
    local i, count = seen[category] or 0, of[category]
    seen[category] = i + 1
    if i * n // count ~= (i - 1) * n // count then chosen[#chosen + 1] = each end
  end
  return chosen
end

-- Reads the questions of a benchmark from the folder or file `path`; n: of each category (nil: all). Returns nil and a
-- message, with the line, after a mistake.
function questions.read(path, benchmark, n)
  local text, file = contents(path, benchmark.file)
  if not text then return nil, file end
  local list, known, number = {}, {}, 0
  for line in text:gmatch "([^\n]*)\n?" do
    number = number + 1
    if line:find "%S" then
      local each, message = parse(line, benchmark)
      if each and known[each.name] then message = ("repeats the question of line %d"):format(known[each.name]) end
      if message then return nil, ("%s:%d: %s"):format(file, number, message) end
      known[each.name], list[#list + 1] = number, each
    end
  end
  if not list[1] then return nil, file .. ": no questions, expected JSON lines" end
  return n and some(list, n) or list
end

-- Returns the questions whose first turn leaves room for an answer in a context of this many tokens, and the names of
-- the others. how: the options of a chat. Returns nil, a message and a kind if the chat template cannot write them.
function questions.that_fit(pair, list, how, context)
  local fitting, left_out = {}, {}
  for _, each in ipairs(list) do
    local messages = { { role = "user", content = each.turns[1] } }
    if how.system then table.insert(messages, 1, { role = "system", content = how.system }) end
    local prompts, kind, message = chat.prompts(pair, { messages }, how, "questions", 2)
    if not prompts then return nil, message, kind end
    if #prompts[1] < context then fitting[#fitting + 1] = each else left_out[#left_out + 1] = each.name end
  end
  return fitting, left_out
end

return questions
