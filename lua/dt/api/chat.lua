-- Lists of messages as prompts: { {role = "system", content = ".."}, {role = "user", content = ".."}, ... }, as in
-- other programs. Roles: system, at most once and first; then user and assistant in turns, user last.
local core = require "dt.core"
local params = require "dt.policy.params"

local chat = {}

local MESSAGE = { role = true, content = true }
local ROLES = { system = true, user = true, assistant = true }

-- Converts one list to the core's form: { turn, .., system = text }. Raises, `level` functions up.
local function conversation(messages, what, level)
  local turns = {}
  local function refuse(i, ...) error(("%s: message %d: %s"):format(what, i, string.format(...)), level + 2) end
  for i, message in ipairs(messages) do
    if type(message) ~= "table" then refuse(i, "a %s, expected {role = .., content = ..}", type(message)) end
    params.check_keys(message, MESSAGE, ("%s: message %d"):format(what, i), level + 1)
    local role, content = message.role, message.content
    if not ROLES[role] then refuse(i, "role = %s is not system, user or assistant", tostring(role)) end
    if type(content) ~= "string" then refuse(i, "content is a %s, expected a text", type(content)) end
    if role == "system" then
      if i > 1 then refuse(i, "only the first message may have the role system") end
      turns.system = content
    else
      local expected = #turns % 2 == 0 and "user" or "assistant"
      if role ~= expected then refuse(i, "its role is %s, expected %s", role, expected) end
      turns[#turns + 1] = content
    end
  end
  if #turns % 2 == 0 then error(what .. ": the last message must have the role user", level + 1) end
  return turns
end

-- Whether a prompt is a list of token ids; raises, `level` functions up, if only its beginning is.
local function is_ids(prompt, what, level)
  if math.type(prompt[1]) ~= "integer" then return false end
  for i = 1, #prompt do
    if math.type(prompt[i]) ~= "integer" or prompt[i] < 0 then
      error(("%s: prompt: number %d is not a token id"):format(what, i), level + 1)
    end
  end
  return true
end

-- Converts texts, lists of ids, prefixes and lists of messages to prompts in the core's form. Also returns the text
-- that ends an answer, or nil without messages. t: {template = NAME, date = TEXT} for messages (nil: the model's own
-- template, today). Returns nil, kind, message if the model has no template. Raises, `level` functions up, for a value
-- that is not a prompt, and if only some prompts are messages.
function chat.prompts(pair, prompts, t, what, level)
  local list, lists = {}, {}
  for i, prompt in ipairs(prompts) do
    local kind = type(prompt)
    local ids = kind == "table" and is_ids(prompt, what, level + 1)
    if kind == "table" and not ids then lists[#lists + 1] = conversation(prompt, what, level + 1)
    elseif not ids and kind ~= "string" and kind ~= "number" and kind ~= "userdata" then
      error(("%s: a prompt is a %s, expected a text, a prefix or a list of messages"):format(what, kind), level + 1)
    end
    list[i] = ids and table.move(prompt, 1, #prompt, 1, {}) or prompt
  end
  if #lists == 0 then return list end
  if #lists < #list then error(what .. ": some prompts are lists of messages and some are not", level + 1) end
  local texts, ends, message = core.conversations(pair, lists, t.template, t.date)
  if not texts then return nil, ends, message end
  for i, text in ipairs(texts) do list[i] = { text } end
  return list, ends
end

-- The name of the template that formats questions; or nil, a failure's kind and its message. t: template (nil: the
-- model's own), system (nil: none).
function chat.layout(pair, t)
  local texts, ends, name = core.conversations(pair, { { "?", system = t.system } }, t.template)
  if not texts then return nil, ends, name end
  return name
end

return chat
