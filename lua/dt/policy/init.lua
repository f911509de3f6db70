-- The module dt.policy, which policy files require: define, which makes a policy, and helpers.
--
-- It has a second result that policies cannot reach, the host's half, which opens a policy's object and calls it. In
-- the box there is also policy.calibration, which is written in C (lua/box/calibration_object.c); drivers have no trees
-- to calibrate.
local loss_budget = require "dt.policy.loss_budget"
local copies = require "dt.policy.copies"
local experts = require "dt.policy.experts"
local forced = require "dt.policy.forced"
local guesses = require "dt.policy.guesses"
local pace = require "dt.policy.pace"
local params = require "dt.policy.params"
local pass_costs = require "dt.policy.pass_costs"
local sources = require "dt.policy.sources"

-- A policy may overwrite every table that it sees, so the functions called here are stored in locals when this file is
-- loaded. What a policy passes is read only once, and without metamethods.
local error, ipairs, next, setmetatable, type = error, ipairs, next, setmetatable, type
local concat, floor, format = table.concat, math.floor, string.format
local byte, lower, sub = string.byte, string.lower, string.sub
local rawset, sort, tointeger = rawset, table.sort, math.tointeger

local policy = {}
local specs = {} -- policy -> its definition

local KEYS = { name = true, doc = true, scope = true, uses = true, params = true, presets = true, check = true }
local USES = { draft = "optional", costs = "boolean", calibrate = "boolean", memory = "boolean", corpus = "optional",
               target = "integer" }
local MOST_NODES = 256 -- nodes of a verify pass: DT_TREE_VERIFY
local MOST_CANDIDATES = 32 -- candidates of a verified row: DT_TARGET_CANDIDATES
local MOST_HINTS = 64 -- maximum number of missing fields of an object for which a hint is searched
local LONGEST_NAME = 40
local MOST_BYTES = 32 * 1024 -- bytes of names, docs, presets and allowed values, which the host copies
-- Names that parameters cannot have.
local TAKEN = { init = true, draft = true, observe = true, step = true, costs = true, memory = true, corpus = true }

local GIVEN = { "costs", "memory", "corpus" } -- fields that the host sets, if uses declares them

local function nothing() end

local calibrations = {} -- object of a policy with uses.calibrate -> its policy.calibration, used if drafts are coupled

-- Options of commit in the steps below: a single table, so that iterations make no garbage.
local options = {}

-- One iteration. A policy may define its own step, which must commit exactly once.
local function step(self, seq)
  local tree, calibration = seq.tree, seq.coupled and calibrations[self]
  if calibration then calibration:apply(tree) end
  self:draft(tree)
  local out = seq:verify_tree()
  options.rebuild = self.rebuild
  seq:commit(options)
  if calibration then calibration:observe(tree) end
  self:observe(tree, out)
end

-- One iteration of all sequences of a batch: the step of every policy of scope "batch".
local function batch_step(self, batch)
  local calibration = calibrations[self]
  for b = 1, calibration and #batch or 0 do
    if batch[b].seq.coupled then calibration:apply(batch[b]) end
  end
  self:draft(batch)
  local outs = batch:verify_tree()
  options.rebuild = self.rebuild
  batch:commit(options)
  for b = 1, calibration and #batch or 0 do
    if batch[b].seq.coupled then calibration:observe(batch[b]) end
  end
  self:observe(batch, outs)
end

-- The size of a value in bytes: of the strings in it and in the tables in it, and 8 for each other value.
local function bytes(value)
  if type(value) ~= "table" then return type(value) == "string" and #value or 8 end
  local sum = 0
  for key, item in next, value do sum = sum + (type(key) == "string" and #key or 0) + bytes(item) end
  return sum
end

local function description_bytes(spec)
  local sum = #spec.name + #spec.doc + bytes(spec.presets)
  for _, p in ipairs(spec.params) do sum = sum + #p.name + #p.doc + bytes(p.default) + bytes(p.one_of) end
  return sum
end

local function text_option(t, key, what)
  local value = t[key]
  if value ~= nil and type(value) ~= "string" then
    error(format("%s: %s is a %s, not a string", what, key, type(value)), 3)
  end
  return value
end

local METHODS = { "init", "draft", "observe", "step" }

-- Whether b equals a, apart from capitals and at most one letter that is inserted, missing or different.
local function near(a, b)
  a = lower(a)
  local same, n, m = 0, #a, #b
  while same < n and same < m and byte(a, same + 1) == byte(b, same + 1) do same = same + 1 end
  return sub(a, same + 1) == sub(b, same + 1) or sub(a, same + 2) == sub(b, same + 1)
    or sub(a, same + 1) == sub(b, same + 2) or sub(a, same + 2) == sub(b, same + 2)
end

local host = {}

-- Like near, but in short names only capitals may differ.
local function resembles(key, name)
  name = lower(name)
  return lower(key) == name or #key > 2 and #name > 2 and near(key, name)
end

-- Returns a message about what may be meant by a field that an object does not have (a parameter, a field set by the
-- host, or a method), or false.
local function hint_for(spec, P, key)
  local asked = "self." .. key .. " is nil: "
  for _, p in ipairs(spec.params) do
    if p.name == key then return false end -- its value is nil
    if resembles(key, p.name) then return asked .. "did you mean self." .. p.name .. "?" end
  end
  for _, name in ipairs(GIVEN) do
    if name == key then return format("%sthe policy must declare uses = { %s = true }", asked, name) end
    if resembles(key, name) then return asked .. "did you mean self." .. name .. "?" end
  end
  local method
  for name, value in next, P do
    local fits = type(name) == "string" and type(value) == "function" and resembles(key, name)
    if fits and (not method or name < method) then method = name end
  end
  return method and asked .. "did you mean the method " .. method .. "?" or false
end

-- Notes reads of fields that an object does not have. They are not mistakes, since a field may be nil on purpose; but
-- if one causes an error, its message ends with the hint.
local function missing(spec)
  local hints, n = {}, 0
  return function(P, key)
    local hint = hints[key]
    if hint == nil and n < MOST_HINTS and type(key) == "string" and #key <= LONGEST_NAME then
      hint, n = hint_for(spec, P, key), n + 1
      hints[key] = hint
    end
    if hint and host.note_missing then host.note_missing(hint) end
  end
end

-- The metatable of a policy. It raises for a method with a mistyped name, which nothing would ever call.
local function guard(what, spec)
  local function add(P, key, value)
    for _, method in ipairs(METHODS) do
      if type(key) == "string" and type(value) == "function" and #key < 10 and near(key, method) then
        error(format("%s: a method '%s' would never be called: did you mean '%s'?", what, key, method), 2)
      end
    end
    rawset(P, key, value)
  end
  return { __newindex = add, __index = missing(spec), __metatable = false }
end

function policy.define(t)
  if type(t) ~= "table" then error("policy.define: expected a table of options, got " .. type(t), 2) end
  t = params.copied(t)
  local what = "policy.define"
  local name = text_option(t, "name", what)
  if not name or name == "" then error("policy.define: name is missing", 2) end
  what = "policy.define: " .. name
  params.check_keys(t, KEYS, what, 2)
  local spec = { name = name, doc = text_option(t, "doc", what) or "", presets = {} }
  local scope = text_option(t, "scope", what) or "sequence"
  if scope ~= "sequence" and scope ~= "batch" then
    error(format('%s: scope is "%s", not "sequence" or "batch"', what, scope), 2)
  end
  spec.batch = scope == "batch"
  spec.uses = { draft = true, costs = false, calibrate = false, memory = false, corpus = false, target = 0 }
  if t.uses ~= nil then
    if type(t.uses) ~= "table" then error(what .. ": uses is not a table", 2) end
    params.check_keys(t.uses, USES, what .. ": uses", 2)
    for key, value in next, t.uses do
      if USES[key] == "optional" and type(value) ~= "boolean" and value ~= "optional" then
        error(format('%s: uses.%s is not true, false or "optional"', what, key), 2)
      end
      if USES[key] == "boolean" and type(value) ~= "boolean" then
        error(format("%s: uses.%s is not true or false", what, key), 2)
      end
      local whole = type(value) == "number" and tointeger(value)
      if USES[key] == "integer" and not (whole and whole >= 1 and whole <= MOST_CANDIDATES) then
        error(format("%s: uses.%s is not an integer from 1 to %d", what, key, MOST_CANDIDATES), 2)
      end
      spec.uses[key] = value
    end
  end
  spec.params = params.declare(t.params or {}, what, 2)
  for _, p in ipairs(spec.params) do
    if TAKEN[p.name] then error(format("%s: a parameter cannot be named %s", what, p.name), 2) end
  end
  if t.presets ~= nil and type(t.presets) ~= "table" then error(what .. ": presets is not a table", 2) end
  for preset, values in next, t.presets or {} do
    if type(preset) ~= "string" or type(values) ~= "table" then
      error(what .. ": presets is not a table of NAME = {PARAMETER = VALUE, ...}", 2)
    end
    if preset == "tuned" then error(what .. ": a preset cannot be named tuned: dtrun run tune makes it", 2) end
    local checked, message = params.check_values(spec.params, values)
    if not checked then error(format("%s: preset %s: %s", what, preset, message), 2) end
    spec.presets[preset] = checked
  end
  local size = description_bytes(spec)
  if size > MOST_BYTES then
    error(format("policy.define: names, docs, presets and values have %d bytes, more than %d", size, MOST_BYTES), 2)
  end
  if t.check ~= nil and type(t.check) ~= "function" then error(what .. ": check is not a function", 2) end
  spec.check = t.check
  local P = { init = nothing, draft = nothing, observe = nothing, step = spec.batch and batch_step or step }
  specs[P] = spec
  return setmetatable(P, guard(name, spec))
end

function policy.clip(x, low, high)
  if x < low then return low end
  if x > high then return high end
  return x
end

-- The nearest integer; halves go up.
function policy.round(x) return floor(x + 0.5) end

-- A chain of up to `length` nodes below the root (tree:draft_chain).
function policy.chain(tree, length, least) return tree:draft_chain(tree.root, length, least) end

-- One draft pass over nodes[1..n] and b children for each: the new nodes are first..last; none: last = first - 1.
function policy.expand(tree, nodes, n, b)
  tree:draft_step(nodes, n)
  local first = tree:size() + 1
  for i = 1, n do tree:branch(nodes[i], b) end
  return first, tree:size()
end

-- The fixed tree of the `total` nodes, at most `depth` deep, with the largest products of p over their ranks. shape[v]
-- is the number of children of node v; the root is node 0, and nodes are numbered level by level as children are added.
function policy.shape(p, total, depth)
  total, depth = tointeger(total), tointeger(depth)
  if not total or total < 0 or total > MOST_NODES then
    error("policy.shape: total is not an integer from 0 to " .. MOST_NODES, 2)
  end
  if not depth or depth < 0 then error("policy.shape: depth is not an integer of 0 or more", 2) end
  local children, value, level = { [0] = {} }, { [0] = 1.0 }, { [0] = 0 }
  for v = 1, total do -- add the best child that is not in the tree yet
    local best, most
    for u = 0, v - 1 do
      local x = level[u] < depth and p[#children[u] + 1]
      if x and (not most or value[u] * x > most) then best, most = u, value[u] * x end
    end
    if not best then break end
    children[v], value[v], level[v] = {}, most, level[best] + 1
    children[best][#children[best] + 1] = v
  end
  local shape, order, n = {}, { [0] = 0 }, 0
  for v = 0, #value do
    local list = children[order[v]]
    shape[v] = #list
    for i = 1, #list do
      n = n + 1
      order[n] = list[i]
    end
  end
  return shape
end

-- A window that keeps the last `size` numbers pushed.
local Window = {}
Window.__index = Window

function policy.window(size)
  size = tointeger(size)
  if not size or size < 1 then error("policy.window: size must be an integer of at least 1", 2) end
  return setmetatable({ size = size, count = 0 }, Window)
end

function Window:push(x)
  self[self.count % self.size + 1] = x
  self.count = self.count + 1
end

function Window:n() return self.count < self.size and self.count or self.size end

-- The mean; nil while the window is empty.
function Window:mean()
  local n, sum = self:n(), 0.0
  for i = 1, n do sum = sum + self[i] end
  if n > 0 then return sum / n end
end

-- Building blocks of policies, each in a file of its own.
policy.copies, policy.experts, policy.forced, policy.loss_budget = copies, experts, forced, loss_budget
policy.pace, policy.pass_costs, policy.sources = pace, pass_costs, sources
function policy.guesses(p, seq) return guesses(p, seq, policy.calibration) end

local function preset_names(spec)
  local names = {}
  for name in next, spec.presets do names[#names + 1] = name end
  sort(names)
  return names
end

-- Sets values from {name, text} pairs. Returns a message about a mistake, or nil.
local function apply(spec, values, settings)
  for _, setting in ipairs(settings) do
    local p, message = params.find(spec.params, setting[1])
    if not p then return message end
    values[p.name], message = params.parse(p, setting[2])
    if message then return message end
  end
end

-- Returns {parameter = value}, from the defaults, then the preset (its name, or its settings), then the settings; or
-- nil and a message.
local function resolve(spec, preset, settings)
  local values = {}
  for _, p in ipairs(spec.params) do values[p.name] = p.default end
  if type(preset) == "table" then
    local message = apply(spec, values, preset)
    if message then return nil, "preset tuned: " .. message end
  elseif preset then
    local chosen = spec.presets[preset]
    if not chosen then
      local names = preset_names(spec)
      return nil, format("no preset '%s' (%s)", preset,
                         #names > 0 and "it has: " .. concat(names, ", ") or "it has none")
    end
    for name, value in next, chosen do values[name] = value end
  end
  local message = apply(spec, values, settings)
  if message then return nil, message end
  return values
end

-- Whether a policy uses a draft: true, false or "optional"; nil for a value that is not a policy, which host.open
-- refuses.
function host.draft(P)
  local spec = P ~= nil and specs[P]
  return spec and spec.uses.draft
end

-- Returns the policy's object, with its parameters as fields, and its description, all strings that the host copies;
-- or, for a mistake of the user, nil and a message.
function host.open(P, preset, settings)
  local spec = P ~= nil and specs[P]
  if not spec then error("the file must return what policy.define gave, not a " .. type(P), 0) end
  local values, message = resolve(spec, preset, settings)
  if not values then return nil, spec.name .. ": " .. message end
  if spec.check then
    local copy = {}
    for _, p in ipairs(spec.params) do copy[p.name] = params.check(p, values[p.name]) end -- copies lists, too
    message = spec.check(copy)
    if type(message) == "string" then return nil, spec.name .. ": " .. message end
    if message ~= nil then
      error(format("%s: check returned a %s, not nil or a message", spec.name, type(message)), 0)
    end
  end
  local description = { name = spec.name, doc = spec.doc, costs = spec.uses.costs,
                        memory = spec.uses.memory, corpus = spec.uses.corpus,
                        corpus_optional = spec.uses.corpus == "optional",
                        target = tointeger(spec.uses.target), batch = spec.batch, presets = preset_names(spec) }
  description.params = {}
  for i, p in ipairs(spec.params) do
    description.params[i] = params.describe(p, values[p.name])
  end
  local object = setmetatable(values, { __index = P })
  if spec.uses.calibrate then calibrations[object] = policy.calibration() end
  return object, description
end

function host.init(object, seq, costs, memory, corpus)
  object.costs, object.memory, object.corpus = costs, memory, corpus
  return object:init(seq)
end

function host.step(object, seq) return object:step(seq) end

return policy, host
