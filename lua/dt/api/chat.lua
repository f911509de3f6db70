-- Lists of messages as prompts: { {role = "system", content = ".."}, {role = "user", content = ".."}, ... }, as in
-- other programs, written by the model's chat template. What roles and orders are possible, the template decides.
local core = require "dt.core"
local json = require "dt.json"
local params = require "dt.policy.params"

local chat = {}

local MESSAGE = { role = true, content = true, reasoning_content = true, name = true, tool_calls = true,
                  tool_call_id = true }

-- Checks one list. Raises, `level` functions up.
local function check(messages, what, level)
  for i, message in ipairs(messages) do
    local function refuse(...) error(("%s: message %d: %s"):format(what, i, string.format(...)), level + 2) end
    if type(message) ~= "table" then refuse("a %s, expected {role = .., content = ..}", type(message)) end
    params.check_keys(message, MESSAGE, ("%s: message %d"):format(what, i), level + 1)
    local role, content = message.role, message.content
    if type(role) ~= "string" then refuse("role is a %s, expected a text such as user", type(role)) end
    if type(content) ~= "string" and not (content == nil and role == "assistant") then
      refuse("content is a %s, expected a text", type(content))
    end
  end
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

-- The core's form of the options for messages: template (nil: the model's own), template_set (variables of the
-- template), template_raw, think, date, and tools, tool_choice and parallel_tool_calls as in OpenAI's interface.
local function options(t)
  local function text(value) return type(value) == "table" and json.encode(value) or value end
  local choice = t.tool_choice
  return { template = t.template, variables = t.template_set and json.encode(t.template_set), think = t.think,
           raw = t.template_raw, date = t.date, tools = text(t.tools),
           tool_choice = type(choice) == "string" and choice:match "^%a+$" and json.encode(choice) or text(choice),
           single_call = t.parallel_tool_calls == false }
end

-- Converts texts, lists of ids, prefixes and lists of messages to prompts in the core's form. With messages, it also
-- returns what answers depend on. t: options for messages (see above). Returns nil, kind, message if the model has no
-- template, or the template refuses the messages. Raises, `level` functions up, for a value that is not a prompt, and
-- if only some prompts are messages.
function chat.prompts(pair, prompts, t, what, level)
  local list, lists = {}, {}
  for i, prompt in ipairs(prompts) do
    local kind = type(prompt)
    local ids = kind == "table" and is_ids(prompt, what, level + 1)
    if kind == "table" and not ids then
      check(prompt, what, level + 1)
      lists[#lists + 1] = json.encode(prompt)
    elseif not ids and kind ~= "string" and kind ~= "number" and kind ~= "userdata" then
      error(("%s: a prompt is a %s, expected a text, a prefix or a list of messages"):format(what, kind), level + 1)
    end
    list[i] = ids and table.move(prompt, 1, #prompt, 1, {}) or prompt
  end
  if #lists == 0 then return list end
  if #lists < #list then error(what .. ": some prompts are lists of messages and some are not", level + 1) end
  return core.conversations(pair, lists, options(t))
end

local calls = 0 -- made so far: their ids differ. Some templates take only ids of nine letters and digits

-- The assistant's message that an answer's text is: {role =, content =, reasoning_content =, tool_calls = {{id =,
-- type = "function", ["function"] = {name =, arguments = JSON}}, ..}}, where members that it does not have are nil; or
-- nil, a failure's kind and its message. answer: the second result of chat.prompts; t: options for messages.
function chat.message(pair, answer, text, t)
  local parts, kind, message = core.message(pair, answer, text, t.template)
  if not parts then return nil, kind, message end
  local list = {}
  for i, call in ipairs(parts.calls) do
    calls = calls + 1
    list[i] = { id = ("call%05d"):format(calls % 100000), type = "function", ["function"] = call }
  end
  return { role = "assistant", content = parts.content, reasoning_content = parts.reasoning,
           tool_calls = #list > 0 and list or nil }
end

-- The name of the template that formats questions; or nil, a failure's kind and its message. t: template (nil: the
-- model's own), system (nil: none).
function chat.layout(pair, t)
  local messages = { { role = "user", content = "?" } }
  if t.system then table.insert(messages, 1, { role = "system", content = t.system }) end
  local texts, answer, name = core.conversations(pair, { json.encode(messages) }, options(t))
  if not texts then return nil, answer, name end
  return name
end

return chat
