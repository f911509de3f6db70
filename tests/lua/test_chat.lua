-- Lists of messages as prompts, on the bundled pair's target.
local lu = require "luaunit"
local dt = require "dt"

local QUESTION = { { role = "system", content = "Be brief." }, { role = "user", content = "Hello there" } }
local TEXT = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\n"

TestChat = {}

function TestChat.setUp() TestChat.pair = assert(dt.load { draft = false }) end
function TestChat.tearDown() TestChat.pair:close() end

local function generate(t)
  t.policy, t.tokens = "ar", t.tokens or 12
  return TestChat.pair:generate(t)
end

function TestChat.test_messages_are_the_text_of_the_template()
  local plain = assert(generate { prompt = TEXT })
  for _, key in ipairs { "messages", "prompt" } do
    local result = assert(generate { [key] = QUESTION, template = "chatml" })
    lu.assertEquals({ result.prompt_ids, result.text }, { plain.prompt_ids, plain.text })
  end
end

-- The mark that ends an answer, that the core is asked for.
local function ends(t)
  local core, asked = require "dt.core", nil
  local generate_ = core.generate
  function core.generate(self, options)
    asked = options
    return generate_(self, options)
  end
  t.tokens = 1
  assert(generate(t))
  core.generate = generate_
  return asked.chat and asked.chat.ends
end

function TestChat.test_an_answer_ends_where_the_template_ends_it()
  local function asks(t, mark) lu.assertEquals(ends(t), mark) end
  asks({ messages = QUESTION, template = "chatml" }, "<|im_end|>")
  asks({ messages = QUESTION, template = "chatml", stop = { "a" } }, "<|im_end|>")
  asks({ prompt = assert(TestChat.pair:prefix(QUESTION, { template = "chatml" })) }, "<|im_end|>")
  asks({ prompt = "x" })
end

function TestChat.test_a_grammar_ends_a_text_that_spells_the_mark()
  local held = assert(generate { messages = QUESTION, template = "chatml", tokens = 60,
                                 grammar = 'root ::= "use <|im_end|> here"' })
  lu.assertEquals({ held.text, held.finish_reason }, { "use <|im_end|> here", "eos" })
end

function TestChat.test_a_prefix_and_a_batch_of_messages()
  local plain = assert(generate { messages = QUESTION, template = "chatml" })
  local prefix = assert(TestChat.pair:prefix(QUESTION, { template = "chatml" }))
  lu.assertEquals(assert(generate { prompt = prefix }).tokens, plain.tokens)
  local results, failures = TestChat.pair:generate_batch { policy = "ar", tokens = 12, template = "chatml",
                                                           prompts = { QUESTION, QUESTION } }
  lu.assertEquals({ results[1].tokens, results[2].tokens, failures }, { plain.tokens, plain.tokens, {} })
end

function TestChat.test_a_template_tells_the_date_given_or_todays()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir %s && cp %s/* %s"):format(folder, TestChat.pair.target.path, folder)))
  local file = assert(io.open(folder .. "/chat_template.jinja", "w"))
  file:write "Today Date: {{ strftime_now('%d %b %Y') }}"
  file:close()
  local pair <close> = assert(dt.load { target = folder, draft = false })
  for _, date in ipairs { "01 Jan 2020", os.date "%d %b %Y" } do
    local given = date:find "2020" and date or nil
    local result = assert(pair:generate { policy = "ar", messages = QUESTION, date = given, tokens = 1 })
    lu.assertStrContains(pair:decode(result.prompt_ids), "Today Date: " .. date)
  end
  os.execute("rm -r " .. folder)
end

function TestChat.test_a_model_without_a_template_is_returned()
  local result, failure = generate { messages = QUESTION }
  lu.assertNil(result)
  lu.assertEquals(failure.kind, "input")
  lu.assertStrContains(failure.message, "mini-target has no chat template")
  local function refuses(text, template)
    lu.assertStrContains(select(2, generate { messages = QUESTION, template = template }).message, text)
  end
  refuses("no chat template 'x'", "x")
  refuses("does not support a system message", "mistral")
end

function TestChat.test_mistakes_in_messages_raise()
  local user = QUESTION[2]
  local function raises(text, messages)
    lu.assertErrorMsgContains("generate: " .. text, TestChat.pair.generate, TestChat.pair,
      { policy = "ar", messages = messages, template = "chatml" })
  end
  raises("messages is a string, expected a list of messages", "hello")
  raises("message 1: role is a nil, expected a text", { { content = "x" } })
  raises("message 1: content is a table, expected a text", { { role = "user", content = { { text = "x" } } } })
  raises("message 1: a string, expected {role = .., content = ..}", { "x" })
  raises("message 1: unknown key 'names' (known: content, name,", { { role = "user", content = "x", names = "y" } })
  lu.assertErrorMsgContains("generate: give either prompt or messages, not both", generate,
    { prompt = "x", messages = { user } })
  lu.assertErrorMsgContains("a prompt is a boolean, expected a text, a prefix or a list of messages", generate,
    { prompt = true })
  lu.assertErrorMsgContains("some prompts are lists of messages and some are not", TestChat.pair.generate_batch,
    TestChat.pair, { policy = "ar", prompts = { "x", { user } }, template = "chatml" })
  lu.assertErrorMsgContains("prefix: message 1: role", TestChat.pair.prefix, TestChat.pair, { { role = 1 } })
end

function TestChat.test_an_answer_is_continued()
  local text = TEXT .. "I am"
  local plain = assert(generate { prompt = text })
  local messages = { QUESTION[1], QUESTION[2], { role = "assistant", content = "I am" } }
  lu.assertEquals(assert(generate { messages = messages, template = "chatml" }).prompt_ids, plain.prompt_ids)
end

local TOOLS = [==[[
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
  "city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
  "required": ["city", "days"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {},
  "additionalProperties": false}}}]]==]

function TestChat.test_an_answer_calls_tools()
  local function ask(t)
    t.messages, t.template, t.tools, t.tokens = t.messages or QUESTION, "llama3", t.tools or TOOLS, t.tokens or 100
    return generate(t)
  end
  local named = { type = "function", ["function"] = { name = "get_weather" } }
  for _, temp in ipairs { 0, 1 } do
    local message = assert(ask { tool_choice = named, temp = temp }).message
    lu.assertEquals({ message.role, message.content, #message.tool_calls }, { "assistant", "", 1 })
    local call = message.tool_calls[1]
    local arguments = dt.json.decode(call["function"].arguments)
    lu.assertEquals({ call.type, call["function"].name, #call.id }, { "function", "get_weather", 9 })
    lu.assertTrue(arguments.city == "Paris" or arguments.city == "Rome")
    lu.assertTrue(arguments.days >= 1 and arguments.days <= 9)
    -- the message goes on as it is
    local more = { QUESTION[1], QUESTION[2], message, { role = "tool", tool_call_id = call.id, content = "sun" } }
    local rest = assert(ask { messages = more, tool_choice = "none", tokens = 4 })
    lu.assertNil(rest.message)
  end
  local results = assert(TestChat.pair:generate_batch { policy = "ar", prompts = { QUESTION, QUESTION }, tokens = 100,
                         template = "llama3", tools = dt.json.decode(TOOLS), tool_choice = "required",
                         parallel_tool_calls = false })
  lu.assertNotEquals(results[1].message.tool_calls[1].id, results[2].message.tool_calls[1].id)
  -- free text is not a call, and an answer under another grammar is none
  local free = assert(ask { tokens = 12 })
  lu.assertEquals(free.message, { role = "assistant", content = free.text })
  lu.assertNil(assert(ask { regex = "[a-z]{3}" }).message)
  local _, failure = ask { tools = "[]", tool_choice = "required" }
  lu.assertEquals({ failure.kind, failure.message }, { "input", "tool_choice: there are no tools to call" })
  _, failure = ask { tools = '[{"type": "function", "function": {"name": "f", "parameters": {"type": 3}}}]',
                     tool_choice = "required" }
  lu.assertStrContains(failure.message, "f")
  lu.assertErrorMsgContains("generate: tool_choice: a call cannot be required together with a grammar", ask,
                            { tool_choice = "required", regex = "a" })
  lu.assertErrorMsgContains("generate: tools = 3 is not a list of tools, or its JSON", ask, { tools = 3 })
end

function TestChat.test_a_template_has_variables()
  local file = os.tmpname()
  local f = assert(io.open(file, "w"))
  f:write "{{ messages[0].content }} {{ n + 1 if n is defined }} {{ 'on' if enable_thinking }}"
  f:close()
  local function text(t)
    t.messages, t.template, t.tokens = { { role = "user", content = "x" } }, file, 1
    return TestChat.pair:decode(assert(generate(t)).prompt_ids)
  end
  lu.assertEquals(text {}, "x  ")
  lu.assertEquals(text { template_set = { n = 41 } }, "x 42 ")
  lu.assertEquals(text { think = "on" }, "x  on")
  os.remove(file)
  lu.assertStrContains(select(2, generate { messages = QUESTION, template = "llama3", think = "off" }).message,
    "cannot turn reasoning on or off")
end

os.exit(lu.LuaUnit.run())
