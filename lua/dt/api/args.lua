-- A driver's command line: options declared like parameters (dt.policy.params), and those that all drivers share.
--
--   local opts = dt.args {
--     doc = "what the driver does",
--     options = { { "tokens", 128, short = "n", min = 1, doc = "new tokens" }, { "quick", false },
--                 { "prompt", many = "FILE" },     -- takes all arguments up to the next option: a list of texts
--                 { "temp", value = "T", read = f } }, -- f(text, name) returns the value, or nil and a message
--     rest = "FILE",                       -- name of further arguments; without it there are none
--     models = false,                      -- the driver loads none, so it has no options for them
--     costs = "table",                     -- costs that policies use unless --costs is given: runs can be compared
--   }
--   local pair = assert(dt.load(opts.load)); print(opts.tokens, opts.quick, opts.rest[1])
local complain = require "dt.complain"
local core = require "dt.core"
local params = require "dt.policy.params"

local args = {}

local SPEC = { doc = true, options = true, rest = true, models = true, costs = true }

local help = core.fields "load"

local SHARED = {
  { "target", nil, type = "string", short = "m", also = "model", doc = help.target },
  { "draft", nil, type = "string", short = "md", also = "model-draft", doc = help.draft },
  { "weights", nil, type = "string", doc = help.weights },
  { "draft_weights", nil, type = "string", doc = help.draft_weights },
  { "draft_vocab", nil, type = "string", doc = help.draft_vocab },
  { "draft_output", nil, type = "string", doc = help.draft_output },
  { "draft_window", nil, type = "integer", min = 1, max = 2147483647, doc = help.draft_window },
  { "head_layers", nil, type = "string", doc = help.head_layers },
  { "cache_dtype", nil, type = "string", doc = help.cache_dtype },
  { "activations", nil, type = "string", one_of = { "8", "16" }, doc = help.activations },
  { "rope_scaling", nil, type = "string", doc = help.rope_scaling },
  { "rope_scale", nil, type = "number", min = 1, doc = help.rope_scale },
  { "yarn_orig_ctx", nil, type = "integer", min = 1, doc = help.yarn_orig_ctx },
  { "costs", nil, type = "string", one_of = { "learn", "table" }, doc = core.fields("generate").costs },
  { "corpus", many = "FILE", doc = "text files in which policies such as suffix search" },
  { "threads", nil, type = "integer", min = 1, max = 1024, short = "t", doc = help.threads },
  { "ctx", nil, type = "integer", min = 1, max = 2147483647, short = "c", doc = help.ctx },
  { "numa", nil, type = "string", doc = help.numa },
  { "backend", nil, type = "string", doc = help.backend },
  { "gpu_layers", nil, type = "string", doc = help.gpu_layers },
  { "gpus", nil, type = "integer", min = 1, max = 16, doc = help.gpus },
  { "cpu_experts", nil, type = "integer", min = 1, max = 2147483647, doc = help.cpu_experts },
  { "no_packed_cache", false, doc = help.no_packed_cache },
}

-- Fields of an option that parameters do not have.
local OWN = { short = true, also = true, many = true, value = true, read = true }

local function spelling(name) return (name:gsub("_", "-")) end

-- The declarations by option name ("tokens", "n"), and their ordered list.
local function declare(spec)
  local list, extra = {}, {}
  for _, group in ipairs { spec.options or {}, spec.models == false and {} or SHARED } do
    for _, entry in ipairs(group) do
      local plain = {}
      for key, value in pairs(entry) do
        if not OWN[key] then plain[key] = value end
      end
      if entry.many or entry.read then plain.type = "string" end
      list[#list + 1] = plain
      extra[#list] = entry
    end
  end
  local declared = params.declare(list, "dt.args", 4)
  local by_name = {}
  for i, p in ipairs(declared) do
    for key in pairs(OWN) do p[key] = extra[i][key] end
    p.shared = i > #(spec.options or {})
    by_name["--" .. spelling(p.name)] = p
    if extra[i].short then by_name["-" .. extra[i].short] = p end
    if extra[i].also then by_name["--" .. extra[i].also] = p end
  end
  return declared, by_name
end

-- The option's name in an argument, and the value after its '=', if there is one.
local function split(argument)
  local name, text = argument:match "^(%-%-[^=]+)=(.*)$"
  return name or argument, text
end

-- Reads the option at argv[i]: its declaration, its text (nil: none), and the index after it.
local function take(by_name, argv, i)
  local name, text = split(argv[i])
  local p = by_name[name]
  if not p then return nil, "unknown option " .. name .. " (see --help)" end
  if not text and p.type ~= "boolean" then
    i = i + 1
    text = argv[i]
    if not text then return nil, name .. " needs a value" end
    if by_name[split(text)] then return nil, ("%s needs a value, but the option %s follows"):format(name, text) end
  end
  return p, text or "true", i + 1
end

-- Adds text, and the arguments from i on up to the next option, to an option's list; returns the index after them.
local function take_many(list, text, argv, i)
  list[#list + 1] = text
  while i <= #argv and argv[i]:sub(1, 1) ~= "-" do
    list[#list + 1] = argv[i]
    i = i + 1
  end
  return i
end

-- The value of an option's text; or nil and the mistake. given: the name that was used.
local function read(p, given, text)
  local value, message
  if p.read then
    return p.read(text, given:match "^[^=]+")
  end
  value, message = params.parse(p, text)
  return value, message and "--" .. spelling(p.name) .. message:sub(#p.name + 1)
end

-- Returns the options that argv sets; nil and a message for bad usage; only nil if help is wanted.
function args.parse(spec, argv)
  params.check_keys(spec, SPEC, "dt.args", 3)
  local declared, by_name = declare(spec)
  local opts = { rest = {}, load = { costs = spec.costs } }
  for _, p in ipairs(declared) do
    if p.many and not p.shared then opts[p.name] = {} elseif not p.shared then opts[p.name] = p.default end
  end
  local i, plain = 1, false
  while i <= #argv do
    local given = argv[i]
    if plain or given == "-" or given:sub(1, 1) ~= "-" then
      if not spec.rest then return nil, ("unexpected argument '%s' (see --help)"):format(given) end
      opts.rest[#opts.rest + 1] = given
      i = i + 1
    elseif given == "--" then
      plain, i = true, i + 1
    elseif given == "--help" or given == "-h" then
      return nil
    else
      local p, text, after = take(by_name, argv, i)
      if not p then return nil, text end
      if p.many then
        local from = p.shared and opts.load or opts
        from[p.name] = from[p.name] or {}
        i = take_many(from[p.name], text, argv, after)
      else
        local value, message = read(p, given, text)
        if message then return nil, message end
        (p.shared and opts.load or opts)[p.name] = value
        i = after
      end
    end
  end
  return opts
end

-- The name of a driver on the command line: an installed driver is called by its name, others by their path.
function args.called(path)
  for _, home in ipairs(core.homes()) do
    local name = path:sub(#home + 1):match "^/scripts/([^/]+)%.lua$"
    if name and path:sub(1, #home) == home then return name end
  end
  return path
end

function args.help(spec, program)
  local declared = declare(spec)
  local lines = { ("usage: dtrun run %s [options]%s"):format(program, spec.rest and " " .. spec.rest .. "..." or "") }
  if spec.doc then lines[#lines + 1] = spec.doc end
  for _, p in ipairs(declared) do
    local form = (p.short and "-" .. p.short .. ", " or "") .. "--" .. spelling(p.name)
    if p.many then
      form = ("%s %s..."):format(form, p.many)
    elseif p.type ~= "boolean" then
      form = form .. " " .. (p.value or p.type:upper())
    end
    local range, notes = params.range(p), {}
    if range ~= "" then notes[#notes + 1] = range end
    if p.default ~= nil and p.default ~= false then notes[#notes + 1] = "default " .. params.text(p.default) end
    local note = #notes > 0 and " (" .. table.concat(notes, "; ") .. ")" or ""
    lines[#lines + 1] = ("  %-32s %s%s"):format(form, p.doc, note)
  end
  return table.concat(lines, "\n")
end

-- Reads the program's own arguments. --help prints the help and ends the program; bad usage ends it with exit status 2.
function args.args(spec)
  local opts, message = args.parse(spec, arg)
  if opts then return opts end
  if message then
    complain(message)
    os.exit(2, true)
  end
  print(args.help(spec, args.called(arg[0])))
  os.exit(0, true)
end

return args
