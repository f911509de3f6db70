-- Functions for programs in other languages (dtl_bridge_call in host.h). Each takes an object of options and returns a
-- value, both as JSON. They are the functions of drivers, except that a pair is a number.
local core = require "dt.core"
local dt = require "dt"
local json = dt.json
local trace = require "dt.trace"
local trees = require "dt.trace_trees"

local bridge, loaded, count = {}, {}, 0

local PAIR = { "target", "draft", "backend", "threads", "load_ms", table.unpack(core.facts) }

local function pair_of(options)
  local pair = loaded[options.pair]
  options.pair = nil
  return pair or error("the pair is closed", 0)
end

-- Options of dt.load -> {pair = number, target = {..}, ..}
function bridge.load(options)
  local pair, failure = dt.load(options)
  if not pair then return nil, failure end
  count = count + 1
  loaded[count] = pair
  local about = { pair = count }
  for _, name in ipairs(PAIR) do about[name] = pair[name] end
  return about
end

-- {path =} -> facts from the model's files
function bridge.look(options) return dt.look(options.path) end

-- {name =} -> {script =, folder =, names =}: how to install a model that a package contains (dtl_named_model in host.h)
function bridge.named_model(options)
  local name = options.name
  if type(name) ~= "string" or name:find "%c" then error("pull: name must be a string", 0) end
  local about, kind, message = core.named_model(name)
  return about, { kind = kind, message = message }
end

function bridge.close(options)
  local number = options.pair
  pair_of(options):close()
  loaded[number] = nil
  return true
end

-- Fills in a missing policy as the command line does.
local function chosen(pair, options)
  if options.policy == nil and options.source == nil then options.policy = pair.draft and "rate" or "ar" end
  return options
end

-- Raises if the value can be neither a text nor a list: Lua would accept a number as a text.
local function check_prompt(what, value)
  local kind = type(value)
  if kind == "number" or kind == "boolean" then
    error(("%s is a %s, expected a text or a list of messages"):format(what, kind), 0)
  end
end


-- Options of pair:generate -> a result; the listener receives each piece of the text. With on_logprobs = true it
-- receives JSON instead: for each iteration {logprobs =} and then {text =}.
function bridge.generate(options, tell)
  local pair = pair_of(options)
  check_prompt("generate: prompt", options.prompt)
  options.on_text = tell
  if options.on_logprobs then
    options.on_logprobs = function(list) return tell(json.encode { logprobs = list }) end
    options.on_text = function(text) return tell(json.encode { text = text }) end
  end
  return pair:generate(chosen(pair, options))
end

-- Options of pair:generate_batch -> true; the listener receives {prompt =, value =, error =} as each text ends.
function bridge.generate_batch(options, tell)
  local pair = pair_of(options)
  if type(options.prompts) == "table" then
    for i, prompt in ipairs(options.prompts) do check_prompt("generate_batch: prompt " .. i, prompt) end
  end
  function options.on_done(i, result, failure)
    return tell(json.encode { prompt = i, value = result, error = failure })
  end
  return pair:generate_batch(chosen(pair, options))
end

function bridge.policy(options) return pair_of(options):policy(options) end

-- {text =} -> ids, and {ids =} -> text
function bridge.encode(options)
  if type(options.text) ~= "string" then error("encode: text must be a string", 0) end
  return pair_of(options):encode(options.text)
end

function bridge.decode(options)
  local ids = options.ids
  for i, id in ipairs(type(ids) == "table" and ids or error("decode: ids is not a list of token ids", 0)) do
    if math.type(id) ~= "integer" then error(("decode: ids: number %d is not a token id"):format(i), 0) end
  end
  return pair_of(options):decode(ids)
end

-- {iterations = lines of a trace} -> the drawing of each, as SVG
function bridge.draw(options)
  local list = options.iterations
  for i, iteration in ipairs(type(list) == "table" and list or error("draw: iterations is not a list", 0)) do
    local wrong = trace.flaw(iteration)
    if wrong then error(("draw: iteration %d: %s"):format(i, wrong), 0) end
  end
  return json.array(trees.draw(list, false))
end

function bridge.version() return dt.version end

-- Returns the answer to a call, as JSON. A mistake in the options is reported like other failures.
return function(name, text, tell)
  local ok, value, failure = pcall(function()
    local options, wrong = json.decode(text)
    if type(options) ~= "table" then error(wrong or "the options are not a JSON object", 0) end
    return (bridge[name] or error(("no function '%s'"):format(name), 0))(options, tell)
  end)
  if not ok then
    value, failure = nil, { kind = "input", message = tostring(value):gsub("^[%w_/.]+:%d+: ", "") }
  end
  if value ~= nil then return json.encode { value = value } end
  return json.encode { error = failure }
end
