-- The module of drivers: local dt = require "dt". It loads pairs, generates, and has other tools for measuring scripts.
-- Failures return nil and a table {kind=, message=}; mistakes in the driver raise an error.
local chat = require "dt.api.chat"
local complain = require "dt.complain"
local core = require "dt.core"
local params = require "dt.policy.params"

local dt = {
  json = require "dt.json",
  args = require("dt.api.args").args,
  grid = require "dt.api.grid",
  progress = require "dt.api.progress",
  clock = core.clock,   -- milliseconds, monotonic
  append = core.append, -- (path, line): true, or nil and a message; the line is on disk when it returns
  version = core.version,
  machine = core.machine, -- the processor, and the number of its threads that may be used
  processors = core.processors, -- number of processors that may be kept busy: affinity mask and quota limit it
  homes = core.homes, -- (): the folders with policies, drivers and models, in the order in which they are searched
  mpi = core.mpi, -- (): whether MPI is installed, so that mpirun can share a target among processes
}

local STATUS = { policy = 3, input = 2, context = 2, device = 1 }

-- Returns value. If it is nil, ends the program with a one-line message and the exit status of that kind of failure;
-- after Ctrl-C, as Ctrl-C would end it. Use it for mistakes of the user: dt.check(dt.load(opts.load)).
function dt.check(value, failure, kind)
  if value ~= nil then return value end
  local message = failure
  if type(failure) == "table" then message, kind = failure.message, failure.kind end
  if kind == "interrupted" then error(message, 0) end
  complain(message)
  os.exit(STATUS[kind or "input"], true)
end

local Failure = { __tostring = function(failure) return failure.message end }

local function failed(kind, message, file, line)
  if file == "" then file, line = nil, nil end
  return setmetatable({ kind = kind, message = message, file = file, line = line }, Failure)
end

-- Returns `first`, or nil and a failure made of the core's values.
local function checked(first, ...)
  if first == nil then return nil, failed(...) end
  return first
end

-- Strings of C end at a NUL.
local function is_name(x) return type(x) == "string" and not x:find("\0", 1, true) end

-- Facts from a model's files, without loading the model: {family=, norm=, tokenizer=, bytes=}. Draft heads name their
-- target by norm (models/README.md).
function dt.look(path)
  if not is_name(path) then error("look: a path is expected", 2) end
  return checked(core.look(path))
end

local function options_table(t, known, what)
  if type(t) ~= "table" then error(("%s: a table of options is expected, got %s"):format(what, type(t)), 3) end
  params.check_keys(t, known, what, 3)
  return t
end

local MOST = 2 ^ 31 - 1 | 0 -- the largest integer of the engine

local function is_flag(x) return type(x) == "boolean" end

-- Whether x is a list whose values all pass `fits`.
local function is_list(x, fits)
  if type(x) ~= "table" then return false end
  for key in next, x do
    if math.type(key) ~= "integer" or key < 1 or key > #x then return false end
  end
  for i = 1, #x do
    if not fits(x[i]) then return false end
  end
  return true
end

-- A value on one line of a message, cut to a useful length.
local function shown(value)
  if type(value) == "table" then return next(value) == nil and "{}" or "{..}" end
  if type(value) ~= "string" then return tostring(value) end
  local cut = #value > 60 and utf8.len(value) and value:sub(1, utf8.offset(value, 0, 60) - 1) .. ".." or value
  return ("'%s'"):format(cut:gsub("%c", "?"))
end

-- Raises for the caller's caller unless value is nil or an integer from 1 to most.
local function check_integer(what, value, most)
  if value == nil or math.type(value) == "integer" and value >= 1 and value <= most then return end
  error(("%s = %s is not an integer from 1 to %d"):format(what, shown(value), most), 3)
end

-- checks: a list of {name, function that checks a value, description of the expected value}. Raises `level` functions
-- up.
local function check_options(t, checks, what, level)
  for _, option in ipairs(checks) do
    local name, fits, expected = table.unpack(option)
    if t[name] ~= nil and not fits(t[name]) then
      error(("%s: %s = %s is not %s"):format(what, name, shown(t[name]), expected), level + 1)
    end
  end
end

-- The pair, with costs of passes and a corpus if the options name them; or nil and a failure.
local function opened(t, first, ...)
  if first == nil then return nil, failed(...) end
  if t.costs then core.set_costs(first, type(t.costs) == "table" and dt.json.encode(t.costs) or t.costs) end
  if t.corpus then
    local done, failure = checked(core.read(first, type(t.corpus) == "string" and { t.corpus } or t.corpus))
    if not done then
      first:close()
      return nil, failure
    end
  end
  return first
end

local function copied(t)
  local copy = {}
  for key, value in next, t do copy[key] = value end
  return copy
end

-- The names in `own`, and those that the core reads as fields of `where` (requests or pairs).
local function with_fields(where, own)
  for name in pairs(core.fields(where)) do own[name] = true end
  return own
end

local LOAD = with_fields("load", { costs = true, corpus = true })

local LOADED = { { "corpus", function(x) return is_name(x) or is_list(x, is_name) end, "a file or a list of files" },
                 { "costs", function(x) return type(x) == "table" or x == "table" or x == "learn" end,
                   '"table", "learn" or a table from dt.measure_costs' } }

-- Loads a pair. Without options it is the bundled pair; with only a target, the draft is the one that belongs to it, if
-- there is one (models/README.md); draft = false: no draft. costs, for policies: "learn" (learned from runs; the
-- default), "table" (measured when first needed) or a table from dt.measure_costs. corpus: a file or a list of files,
-- for policies that look up texts.
function dt.load(t)
  t = options_table(t or {}, LOAD, "dt.load")
  check_options(t, LOADED, "dt.load", 2)
  local fields = copied(t)
  if t.draft == false then fields.draft = "none" end
  local asked, wrong = core.request(fields, "load")
  if not asked then error("dt.load: " .. wrong, 2) end
  return opened(t, core.open(asked))
end

-- Returns what a target takes on this machine's GPUs, from the headers of its files, as a table in bytes: weights,
-- caches and scratch on GPUs and host on the host if GPUs have all its layers, and free; and numbers: layers, context,
-- gpu_layers (the most last layers that fit) and cpu_experts (the least that makes the rest fit; 0: none). nil and a
-- failure: there is no GPU, or none computes the model. Options are those of dt.load.
function dt.needs(t)
  local asked, wrong = core.request(copied(options_table(t or {}, LOAD, "dt.needs")), "load")
  if not asked then error("dt.needs: " .. wrong, 2) end
  return checked(core.needs(asked))
end

local FAKE = { vocab = true, context = true, draft_context = true, eos = true, target = true, draft = true,
               costs = true, corpus = true, experts = true, times = true }
local TIMES = { target = true, draft = true, delays = true }
local EXPERTS = { layers = true, of = true, chosen = true, kept = true }

-- Converts {["1 2"] = {[5] = 0.5}, [""] = {...}} to a list of {context = {1, 2}, token = {5}, p = {0.5}}.
local function rules(t, what)
  local list, texts = {}, {}
  for text in pairs(t) do
    if type(text) ~= "string" then error(("dt.fake: %s: a context is a text like \"1 2\""):format(what), 3) end
    texts[#texts + 1] = text
  end
  table.sort(texts)
  for i, text in ipairs(texts) do
    local rule = { context = {}, token = {}, p = {} }
    for id in text:gmatch "%S+" do
      rule.context[#rule.context + 1] = math.tointeger(tonumber(id))
        or error(("dt.fake: %s: '%s' is not a list of token ids"):format(what, text), 3)
    end
    for token in pairs(t[text]) do rule.token[#rule.token + 1] = token end
    table.sort(rule.token)
    for k, token in ipairs(rule.token) do rule.p[k] = t[text][token] end
    list[i] = rule
  end
  return list
end

-- Makes a scripted pair without files, from tables of distributions. experts = {layers=, of=, chosen=, kept=}: in each
-- of `layers` layers a row of the target selects `chosen` of `of` experts; each expert that the previous token selected
-- is selected again with probability `kept` (default 0).
function dt.fake(t)
  t = options_table(t, FAKE, "dt.fake")
  local target = rules(t.target or {}, "target")
  local draft = t.draft ~= false and rules(t.draft or {}, "draft")
  local experts = options_table(t.experts or {}, EXPERTS, "dt.fake: experts")
  local times = options_table(t.times or {}, TIMES, "dt.fake: times")
  return opened(t, core.fake(t.vocab, t.context or 512, t.draft_context, t.eos, target, draft,
                             experts.layers, experts.of, experts.chosen, experts.kept,
                             times.target, times.draft, times.delays))
end

local MEASURE = { fresh = true, batch = true }

-- Returns the costs of the pair's passes on this machine, which are measured once and kept in the user's cache folder:
-- an object with the methods target(rows, context) and draft(rows, context), in ms, and the table that it reads:
-- {batch=, contexts=, rows=, target={{ms, ..}, ..}, draft=}. fresh = true: measure again. batch = N (default
-- 1): passes over N sequences at once, each with that many rows.
function dt.measure_costs(self, t)
  t = options_table(t or {}, MEASURE, "dt.measure_costs")
  local batch = t.batch or 1
  if math.type(batch) ~= "integer" or batch < 1 or batch > 256 then
    error("dt.measure_costs: batch is not an integer from 1 to 256", 2)
  end
  local costs, json, message = core.measure_costs(self, t.fresh, batch)
  if not costs then return nil, failed(json, message) end
  return costs, dt.json.decode(json)
end

local pair = {}

pair.close = core.close

function pair:encode(text) return checked(core.encode(self, text)) end

pair.decode = core.decode

-- Forgets what policies remember of earlier runs, so that later runs do not depend on them.
pair.forget = core.forget

-- Digests of the program and of the pair's files: {commit=, build=, target_hash=, draft_hash=}, all
-- strings; unknown ones are left out. lua/files/identity.h defines them.
pair.identity = core.identity

-- The memory bandwidth of the pair's threads in bytes per second, measured now.
pair.bandwidth = core.bandwidth

local PREFIX = { window = true, sinks = true, template = true, template_set = true, template_raw = true, think = true,
                 date = true, tools = true, tool_choice = true, parallel_tool_calls = true }
local answers = setmetatable({}, { __mode = "k" }) -- prefix of a conversation -> what answers depend on

-- Runs the prompt pass and returns a prefix: a prompt for any number of generate calls with the same window and sinks.
-- text may be a list of messages, as for generate, with the options for messages.
function pair:prefix(text, t)
  t = options_table(t or {}, PREFIX, "prefix")
  check_integer("prefix: window", t.window, MOST)
  check_integer("prefix: sinks", t.sinks, MOST)
  if type(text) ~= "table" then return checked(core.prefix(self, text, t.window, t.sinks)) end
  local prompts, answer, message = chat.prompts(self, { text }, t, "prefix", 2)
  if not prompts then return nil, failed(answer, message) end
  local prefix, failure = checked(core.prefix(self, prompts[1], t.window, t.sinks))
  if prefix then answers[prefix] = answer end
  return prefix, failure
end

local GENERATE = with_fields("generate", {
  policy = true, source = true, params = true, preset = true, prompt = true, on_text = true, trace = true, brief = true,
  coupled = true, policy_seconds = true, messages = true, template = true, template_set = true, template_raw = true,
  think = true, date = true, on_logprobs = true, tools = true, tool_choice = true, parallel_tool_calls = true,
})
for _, name in ipairs { "answers", "slots", "uncoupled" } do GENERATE[name] = nil end -- only batches; coupled = false

local CHOICE = {
  { "policy", is_name, "a policy's name or path" },
  { "source", function(x) return type(x) == "string" end, "a text" },
  { "preset", is_name, "a preset's name" },
  { "params", function(x) return type(x) == "table" end, "{NAME = VALUE, ...}" },
}

local function is_text_or_table(x) return type(x) == "string" or type(x) == "table" end

local CHECKED = {
  { "trace", is_name, "a file's path" },
  { "template", is_name, "a template's name or file" },
  { "template_set", function(x) return type(x) == "table" end, "{NAME = VALUE, ...}" },
  { "template_raw", is_flag, "true or false" },
  { "think", is_name, "on, off or auto" },
  { "date", is_name, "a date as a text" },
  { "tools", is_text_or_table, "a list of tools, or its JSON" },
  { "tool_choice", is_text_or_table, "none, auto, required, or a tool {type = .., [\"function\"] = {name = ..}}" },
  { "parallel_tool_calls", is_flag, "true or false" },
  { "brief", is_flag, "true or false" },
  { "policy_seconds", function(x) return type(x) == "number" and x > 0 end, "a number above 0" },
  { "coupled", is_flag, "true or false" },
}

-- Whether x is a parameter's value, or a list of numbers.
local function is_setting(x)
  local kind = type(x)
  return kind == "number" or kind == "boolean" or is_name(x) or is_list(x, math.type)
end

local function settings(values)
  local list = {}
  for name, value in pairs(values) do
    if not is_name(name) then error(("generate: params: %s is not a parameter's name"):format(shown(name)), 3) end
    if not is_setting(value) then
      error(("generate: params.%s is a %s, expected a value or a list of numbers"):format(name, type(value)), 3)
    end
    list[#list + 1] = { name, params.text(value) }
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local POLICY = { policy = true, source = true, params = true, preset = true }

-- Returns the description of a policy with these parameters, and generates nothing: {name=, doc=, path=, source =
-- digest of its text, needs_draft=, uses_draft=, presets = {names}, params = {{name=, doc=, type=, value=, range=,
-- min=, max=, one_of=, tune = list or false}, ...}} (see dt.policy.params); or nil and a failure.
function pair:policy(t)
  t = options_table(t, POLICY, "policy")
  if not t.policy and not t.source then error("policy: policy is missing", 2) end
  check_options(t, CHOICE, "policy", 2)
  local info, failure = checked(core.policy(self, { policy = t.policy or "source", source = t.source,
                                                    preset = t.preset, settings = settings(t.params or {}) }))
  if not info then return nil, failure end
  for i, p in ipairs(info.params) do info.params[i] = params.described(p) end
  return info
end

-- A grammar of the request's own leaves no calls; otherwise that of the tools constrains the answer.
local function with_tools(fields, answer)
  if not (fields.grammar or fields.json_schema or fields.regex) then
    fields.grammar = answer.grammar
  elseif answer.required then
    error("generate: tool_choice: a call cannot be required together with a grammar", 4)
  else
    answer.tools = nil
  end
end

-- The core's request, from the options that generate and generate_batch share, for these prompts; or nil and a failure.
-- Raises for the caller's caller.
local function request(self, t, prompts, slots)
  if not t.policy and not t.source then error("generate: policy is missing", 3) end
  check_options(t, CHOICE, "generate", 3)
  check_options(t, CHECKED, "generate", 3)
  local list, answer, message = chat.prompts(self, prompts, t, "generate", 3)
  if not list then return nil, failed(answer, message) end
  answer = answer or answers[prompts[1]]
  local fields = copied(t)
  fields.slots, fields.uncoupled = slots, t.coupled == false
  if answer and answer.tools then with_tools(fields, answer) end
  local asked, wrong = core.request(fields, "generate", self)
  if not asked then error("generate: " .. wrong, 3) end
  return {
    policy = t.policy or "source", source = t.source, settings = settings(t.params or {}), preset = t.preset,
    brief = t.brief, policy_seconds = t.policy_seconds, request = asked, prompts = list, chat = answer,
  }
end

-- The result in a JSON text, with the answer as a message if it may have called tools.
local function result_of(self, asked, text, t)
  local result = dt.json.decode(text)
  if asked.chat and asked.chat.tools and result.text then
    result.message = chat.message(self, asked.chat, result.text, t)
  end
  return result
end

-- Generates a text. Returns the result (as in the JSON of --json; with brief = true without prompt_ids, tokens and
-- text), or nil and a failure {kind=, message=, file=, line=, partial=}. prompt: a text, token ids, a prefix, or a list
-- of messages (also as the option messages): { {role = "user", content = ".."}, .. } (dt.api.chat). The chat template
-- `template` (a name or file; nil: the model's own) writes messages, with the variables template_set = {NAME = VALUE},
-- with reasoning on or off (think = "on" or "off"; nil: as the template does), with control tokens in messages if
-- template_raw is true, and with the date `date` (2024-07-26; nil: today) if it shows one; the text then ends where the
-- answer ends. If the last message is the assistant's, the text continues it. With tools (a list as in OpenAI's
-- interface, or its JSON, which keeps the order of properties), tool_choice and parallel_tool_calls, the answer may
-- call them, and the result has `message`: {role = "assistant", content =, reasoning_content =, tool_calls = {{id =,
-- type =, ["function"] = {name =, arguments = JSON}}, ..}}, which can be appended to the messages as it is.
function pair:generate(t)
  t = options_table(t, GENERATE, "generate")
  if t.messages ~= nil and (t.prompt ~= nil or type(t.messages) ~= "table") then
    error(t.prompt ~= nil and "generate: give either prompt or messages, not both"
      or ("generate: messages is a %s, expected a list of messages"):format(type(t.messages)), 2)
  end
  local prompt = t.prompt == nil and t.messages or t.prompt
  if prompt == nil then error("generate: prompt is missing", 2) end
  local result, failure
  local asked, wrong = request(self, t, { prompt })
  if not asked then return nil, wrong end
  asked.on_text, asked.on_logprobs, asked.trace = t.on_text, t.on_logprobs, t.trace
  function asked.on_done(_, text, _, ...) result, failure = result_of(self, asked, text, t), ... and failed(...) end
  local done, other = checked(core.generate(self, asked))
  if done and not failure then return result end
  failure = failure or other
  failure.partial = result
  return nil, failure
end

local BATCH = { prompts = true, slots = true, on_done = true, answers = true }
for name in pairs(GENERATE) do BATCH[name] = true end
BATCH.prompt, BATCH.messages, BATCH.on_text, BATCH.on_logprobs = nil, nil, nil, nil

-- Generates from a list of prompts (texts or prefixes, or lists of messages), `slots` of them at a time (default 8),
-- which share their passes. Each text is the same as if generated alone; prompt i uses seed + i - 1. answers = N: N
-- answers to each prompt, one after another; the prompt is computed once; answer i uses seed + i - 1. Returns the list
-- of results and a table of failures {[i] = {kind=, message=, ..}}; a failed text has a result up to its failure. With
-- on_done = function(i, result, failure), which is called when a sequence ends, results are not kept and true is
-- returned; after the function has returned false, no more sequences begin. Returns nil and a failure if no sequence
-- could begin, or if a policy of scope "batch" failed.
function pair:generate_batch(t)
  t = options_table(t, BATCH, "generate_batch")
  if type(t.prompts) ~= "table" or #t.prompts == 0 then error("generate_batch: prompts is not a list of prompts", 2) end
  local texts = #t.prompts * (math.type(t.answers) == "integer" and t.answers or 1)
  local slots = t.slots or math.max(1, math.min(8, texts))
  local results, failures = {}, {}
  local asked, wrong = request(self, t, t.prompts, slots)
  if not asked then return nil, wrong end
  asked.trace = t.trace
  function asked.on_done(i, text, _, ...)
    local result, failure = result_of(self, asked, text, t), ... and failed(...)
    if t.on_done then return t.on_done(i, result, failure) end
    results[i], failures[i] = result, failure
  end
  local done, failure = checked(core.generate(self, asked))
  if not done then return nil, failure end
  return t.on_done and true or results, failures
end

-- A pair has methods, and facts as fields: target, draft ({path=, vocab=, context=, layers=, hidden=, block=}),
-- target_dtype, draft_dtype, draft_vocab, draft_output, draft_head, draft_window, cache_dtype, activations,
-- rope_scaling, backend, threads, load_ms, shared_vocab.
function core.pair_type.__index(self, key)
  local method = pair[key]
  if method then return method end
  return core.describe(self)[key]
end

return dt
