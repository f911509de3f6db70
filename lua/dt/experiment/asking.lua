-- Options of drivers for chats, sampling and several texts at once. They have the same bounds and messages as those of
-- the command line.
--
--   local opts = dt.args { options = { .., table.unpack(asking.OPTIONS) } }
--   local how = dt.check(asking.chosen(opts))
--   experiment.run { prompts = how:deal(prompts), chat = how.chat, generate = how:options { ignore_eos = true },
--                    protocol = how:noted { chars = 800 }, .. }
--   how.wanted             -- a description: "temp 0.8, chat"; nil: greedy, plain texts, one at a time
local batches = require "dt.batches"
local complain = require "dt.complain"
local core = require "dt.core"
local seeds = require "dt.seeds"

local asking = {}

-- Readers of an option's text: each returns its value, or nil and a message.

-- A reader for a field of a request, as the command line reads it.
local function field(name)
  return function(text, given) return core.read_text(name, given, text) end
end

local function seed(text, given)
  local value = seeds.parse(text)
  if value then return value end
  return nil, ("%s '%s': expected a whole number from 0 to 2^64 - 1"):format(given, text:sub(1, 60))
end

-- ---- options -------------------------------------------------------------------------------------------------------

local help = core.fields "generate"

asking.OPTIONS = {
  { "chat", false, doc = "each prompt is a question: wrap it in the model's chat template" },
  { "system", nil, type = "string", also = "system-prompt", value = "TEXT",
    doc = "system message of a chat (default: the template's own, if it has one)" },
  { "template", nil, type = "string", also = "chat-template", value = "NAME",
    doc = "chat template (default: the model's own): chatml, llama3, ..., or a file" },
  { "think", nil, type = "string", value = "on|off", doc = "turn reasoning on or off (default: as the template does)" },
  { "temp", nil, also = "temperature", value = "T", read = field "temp", doc = help.temp },
  { "top_k", nil, value = "K", read = field "top_k", doc = help.top_k },
  { "top_p", nil, value = "P", read = field "top_p", doc = help.top_p },
  { "min_p", nil, value = "P", read = field "min_p", doc = help.min_p },
  { "seed", nil, short = "s", value = "N", read = seed,
    doc = "seed of sampling and of policies' random numbers (default 0); prompt i uses N + i - 1" },
  { "parallel", nil, short = "np", value = "N", read = field "slots", doc = "number of prompts at once (default 1)" },
}

local Asked = {}
Asked.__index = Asked

local SAMPLERS = { "top_p", "top_k", "min_p" } -- in the order of the command line's messages

local function wanted_of(how)
  local list, sampling = {}, how.sampling
  if sampling.temp > 0 then
    for _, name in ipairs { "temp", "top_k", "top_p", "min_p" } do
      if sampling[name] then list[#list + 1] = ("%s %.14g"):format(name, sampling[name]) end
    end
  end
  if how.chat then list[#list + 1] = "chat" .. (how.chat.template and " " .. how.chat.template or "") end
  if how.parallel then list[#list + 1] = how.parallel .. " at once" end
  return list[1] and table.concat(list, ", ")
end

-- Returns the chosen options; or nil and a message.
function asking.chosen(opts)
  local temp = opts.temp or 0.0
  for _, name in ipairs(SAMPLERS) do
    if opts[name] and opts[name] > 0 and temp == 0 then
      complain(("--%s has no effect at temperature 0: give --temp"):format(name:gsub("_", "-")))
      break
    end
  end
  local how = setmetatable({}, Asked)
  how.seed, how.parallel = opts.seed or 0, opts.parallel
  how.sampling = { temp = temp, top_k = opts.top_k, top_p = opts.top_p,
                   min_p = opts.min_p }
  if opts.chat or opts.template or opts.system or opts.think then
    how.chat = { template = opts.template, system = opts.system, think = opts.think }
  end
  how.wanted = wanted_of(how)
  return how
end

-- Adds the options of sampling to these options of pair:generate.
function Asked:options(options)
  for name, value in pairs(self.sampling) do options[name] = value end
  return options
end

-- Adds the choices that are neither in the options nor in `chat` to this protocol of an experiment.
function Asked:noted(protocol)
  protocol.seed, protocol.parallel = self.seed, self.parallel
  return protocol
end

-- Prompts in the form of dt.experiment, of which the i-th has the i-th seed; with --parallel batches of that size, of
-- which the last may be smaller. before: the numbers of prompts and of batches that come earlier in the experiment
-- (default: none).
function Asked:deal(prompts, before)
  local first, list = before and before.prompts or 0, {}
  if self.parallel and prompts[1] then
    list = batches.of(prompts, self.parallel, { rest = true, before = before and before.batches })
    for _, batch in ipairs(list) do
      batch.axes, batch.generate = nil, { seed = seeds.after(self.seed, first) }
      first = first + #batch.texts
    end
    return list
  end
  for i, prompt in ipairs(prompts) do
    list[i] = { generate = { seed = seeds.after(self.seed, first + i - 1) } }
    for key, value in pairs(prompt) do list[i][key] = value end
  end
  return list
end

return asking
