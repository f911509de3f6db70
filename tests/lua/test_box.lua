-- The bounds of the box as policies/REFERENCE.md states them, one below and one above; and a policy that overwrites
-- all it can reach.
local dt = require "dt"
local lu = require "luaunit"

local pair = assert(dt.fake { vocab = 50, context = 400, draft = {} })

local SOURCE = [[
local policy = require "dt.policy"
%s
local P = policy.define { name = "mine", uses = { draft = false } }
function P:init() %s end
function P:draft(tree) %s end
return P
]]

local function generate(source, more)
  local request = { source = source, prompt = " 1 2 3", tokens = 4, ignore_eos = true }
  for name, value in pairs(more or {}) do request[name] = value end
  return pair:generate(request)
end

local function run(code, more) return generate(SOURCE:format("", code, ""), more) end

local function refused(expected, result, failure)
  lu.assertNil(result)
  lu.assertEquals(failure.kind, "policy", failure.message)
  lu.assertStrContains(failure.message, expected)
  lu.assertNil(failure.message:find "%c")
end

TestBounds = {}

-- form has a %d, which may be `most`, or `above` (default: one more) if that must fail.
local function bound(form, most, expected, above)
  lu.assertNotNil(run(form:format(most)))
  refused(expected, run(form:format(above or most + 1)))
end

function TestBounds.test_instructions()
  local code, form = "if not self.done then self.done = true %s end", "for _ = 1, %d do end"
  lu.assertNotNil(generate(SOURCE:format("", "", code:format(form:format(19990000)))))
  refused("20 million instructions", generate(SOURCE:format("", "", form:format(20010000))))
end

function TestBounds.test_memory() -- 56 bytes for each table, and 4 MiB for the list
  bound("local all = {} for i = 1, %d do all[i] = {} end", 180000, "16 MB of memory", 260000)
  bound("pcall(function() local all = {} for i = 1, %d do all[i] = {} end end)", 180000, "16 MB of memory", 260000)
end

function TestBounds.test_memory_that_is_given_back_does_not_count()
  lu.assertNotNil(run "for i = 1, 2000 do local s = ('x'):rep(60000) .. i end")
end

function TestBounds.test_a_string()
  bound("local s = ('x'):rep(%d - 1) .. 'y'", 65536, "a string of more than 64 KiB")
  bound("local s = ('x'):rep(%d)", 65536, "string.rep: the result is longer than 65536 bytes")
  bound("local s = ('x'):rep(%d // 2, 'y')", 65536, "string.rep", 65538)
end

function TestBounds.test_a_table()
  bound("local t = {} for i = 1, %d do t[-i] = true end", 16384, "a table of more than 16384 keys")
  lu.assertNotNil(run "local t = {} for i = 1, 500000 do t[i] = true end")
end

function TestBounds.test_a_stack()
  bound("local t = {} for i = 1, 30000 do t[i] = i end select('#', table.unpack(t, 1, %d))", 10000, "stack", 25000)
  bound("local function f(n) if n > 0 then f(n - 1) end end f(%d)", 4000, "stack", 20000)
end

function TestBounds.test_arguments()
  bound("local t = {} for i = 1, 256 do t[i] = i end math.max(table.unpack(t, 1, %d))", 255, "more than 255 arguments")
end

function TestBounds.test_the_file()
  local source = SOURCE:format("", "", "")
  local function padded(size) return source .. (" "):rep(size - #source) end
  lu.assertNotNil(generate(padded(65536)))
  local result, failure = generate(padded(65537))
  lu.assertNil(result)
  lu.assertEquals(failure.kind, "input")
  lu.assertStrContains(failure.message, "the policy has 65537 bytes, more than the maximum of 65536")
end

function TestBounds.test_parameters()
  local form = [[local t = {} for i = 1, %d do t[i] = { "p" .. i, i } end policy.define { name = "x", params = t }]]
  local function define(n) return generate(SOURCE:format(form:format(n), "", "")) end
  lu.assertNotNil(define(64))
  refused("65 parameters are more than 64", define(65))
end

-- One text of a policy, in one place after the other, with 32 KiB less the other texts' bytes, and one more.
function TestBounds.test_bytes_of_a_description()
  local places = {
    { "name = ('x'):rep(%d)", 0 },
    { "name = 'abc', doc = ('x'):rep(%d)", 3 },
    { "name = 'abc', params = { { 'p', '', doc = ('x'):rep(%d) } }", 12 },
    { "name = 'abc', params = { { 'p', ('x'):rep(%d) } }", 12 },
    { "name = 'abc', params = { { 'p', 'y', one_of = { 'y', ('x'):rep(%d) } } }", 6 },
    { "name = 'abc', presets = { q = {}, [('x'):rep(%d)] = {} }", 4 },
  }
  for _, place in ipairs(places) do
    local form, rest = place[1], place[2]
    local function define(n) return generate(SOURCE:format("policy.define { " .. form:format(n) .. " }", "", "")) end
    lu.assertNotNil(define(32768 - rest), form)
    refused("32769 bytes, more than 32768", define(32769 - rest))
  end
end

function TestBounds.test_one_long_text_in_many_places_counts_in_each()
  refused("more than 32768", generate(SOURCE:format([[
    local doc, t = ("x"):rep(1000), {}
    for i = 1, 60 do t[i] = { "p" .. i, 1, doc = doc } end
    policy.define { name = "x", params = t }]], "", "")))
end

function TestBounds.test_seconds_of_a_run()
  local slow = SOURCE:format("zeros = ('\\0'):rep(65536)", "", "for _ = 1, 100 do local _ = zeros < zeros end")
  refused("used up its time limit", generate(slow, { policy_seconds = 0.1, tokens = 300 }))
  lu.assertNotNil(generate(slow, { policy_seconds = 1000, tokens = 20 }))
  local start = os.clock()
  refused("used up its time limit", run("while true do local _ = ('x'):rep(60000) end", { policy_seconds = 0.1 }))
  lu.assertTrue(os.clock() - start < 0.6)
  for _, value in ipairs { 0, -1, "1" } do
    lu.assertErrorMsgContains("policy_seconds", generate, slow, { policy_seconds = value })
  end
end

-- Who waits for a pass that has nothing to do must not keep the others waiting.
function TestBounds.test_empty_passes_in_a_batch_are_none()
  local source = SOURCE:gsub("uses = { draft = false }", ""):format("", "", "while true do tree:draft_step(0) end")
  local start = os.clock()
  local results, failures = pair:generate_batch { source = source, prompts = { " 1", " 2" }, tokens = 2 }
  lu.assertEquals(#results, 2)
  lu.assertStrContains(failures[1].message, "ran longer")
  lu.assertStrContains(failures[2].message, "ran longer")
  lu.assertTrue(os.clock() - start < 6)
end

-- ---- fields that an object does not have ----------------------------------------------------------------------------

TestHints = {}

local TYPING = [[
local policy = require "dt.policy"
local P = policy.define { name = "typing", uses = { draft = false }, params = { { "sure", 0.3 }, { "K", 2 } } }
function P:init() self.seen = 1 end
function P:count() return 1 end
function P:draft(tree) %s end
return P
]]

local function fails(code)
  local result, failure = generate(TYPING:format(code))
  lu.assertNil(result)
  return failure.message:match "^%S+:%d+: (.*)"
end

function TestHints.test_an_error_that_comes_of_a_misspelt_field_names_what_was_meant()
  for code, message in pairs {
    ["if 1 < self.shure then end"] = "compare number with nil (self.shure is nil: did you mean self.sure?)",
    ["return math.floor(self.Sure)"] = "(self.Sure is nil: did you mean self.sure?)",
    ["for i = 1, self.k do end"] = "bad 'for' limit (number expected, got nil) (self.k is nil: did you mean self.K?)",
    ["self:cuont() self:coun()"] = "attempt to call a nil value (method 'cuont')",
    ["self:coun()"] = "(method 'coun') (self.coun is nil: did you mean the method count?)",
    ["return self.cost.x"] = "(field 'cost') (self.cost is nil: did you mean self.costs?)",
    ["self.costs:target(1, 1)"] = "(self.costs is nil: the policy must declare uses = { costs = true })",
  } do
    lu.assertStrContains(fails(code), message)
  end
end

function TestHints.test_fields_may_be_nil_on_purpose()
  local function runs(code) lu.assertNotNil(generate(TYPING:format(code))) end
  runs "self.shure = (self.shure or 0) + 1 if self.kk then error 'no' end self.coun = nil"
  runs "for i = 1, 200 do assert(self['k' .. i] == nil and rawget(self, i) == nil) end"
  lu.assertEquals(fails "local _ = self.shure error 'enough'", "enough")
  lu.assertEquals(fails "local _ = self.other .. 'x'", "attempt to concatenate a nil value (field 'other')")
  local later = fails "if self.n then local x x() end self.n, self.shore = 1, self.shure" -- read in the call before
  lu.assertEquals(later, "attempt to call a nil value (local 'x')")
end

-- ---- overwriting ----------------------------------------------------------------------------------------------------

local OVERWRITE = [[
local done
local function overwrite()
  if done then return end
  done = true
  local function evil(t)
    if type(t) == "table" then for i = 1, 3 do t[i] = true end end
    return '","output_hash":"fake', evil
  end
  local next, type, getmetatable, rawset = next, type, getmetatable, rawset
  local seen = {}
  local function spoil(t)
    if type(t) ~= "table" or seen[t] then return end
    seen[t] = true
    local keys, n = {}, 0
    for key in next, t do n = n + 1 keys[n] = key end
    for i = 1, n do
      local value = t[keys[i] ]
      spoil(value)
      if type(value) ~= "table" then rawset(t, keys[i], evil) end
    end
    spoil(getmetatable(t))
  end
  local policy = require "dt.policy"
  local window = policy.window(3)
  spoil(policy)
  spoil(getmetatable(window))
  for _, name in next, { "dt", "dt.policy.params" } do pcall(function() spoil(require(name)) end) end
  spoil(_G)
end
]]

local CHAIN = [[
local policy = require "dt.policy"
%s
local P = policy.define {
  name = "chain", doc = "a chain",
  params = { { "K", 2, min = 1, max = 9 }, { "x", 0.5, min = 0.0, max = 1.0 },
             { "s", "a", one_of = { "a", "b" } }, { "b", true } },
  presets = { long = { K = 5 }, short = { K = 1 }, other = { s = "b" } },
  check = function(p) %s if p.K > 8 then return "K is too large" end end,
}
function P:init() %s self.seen = 0 end
function P:draft(tree)
  %s
  local node = tree.root
  for _ = 1, self.K do
    tree:draft_step(node)
    local first, last = tree:branch(node, 1)
    if last < first then break end
    node = first
  end
end
function P:observe() %s self.seen = self.seen + 1 end
%s
return P
]]

local HERE = "overwrite()"

-- The policy with everything overwritten at the place of that number; 0: nowhere.
local function overwriting(place)
  local code = { OVERWRITE, "", "", "", "", "" }
  if place == 1 then code[1] = OVERWRITE .. " local define = policy.define overwrite() policy.define = define"
  elseif place > 1 then code[place] = HERE end
  return CHAIN:format(table.unpack(code))
end

local function described(place, more)
  local request = { source = overwriting(place) }
  for name, value in pairs(more or {}) do request[name] = value end
  local info, failure = pair:policy(request)
  if info then info.source = nil end -- of another text it is another one
  return dt.json.encode(info or { failure = failure.message })
end

TestOverwriting = {}

function TestOverwriting.test_the_description_stays()
  for place = 1, 6 do
    lu.assertEquals(described(place), described(0))
    lu.assertEquals(described(place, { preset = "long" }), described(0, { preset = "long" }))
    lu.assertEquals(described(place, { preset = "none" }), described(0, { preset = "none" }))
    lu.assertEquals(described(place, { params = { K = 3, x = 0.125, s = "b" } }),
                    described(0, { params = { K = 3, x = 0.125, s = "b" } }))
    lu.assertEquals(described(place, { params = { K = 10 } }), described(0, { params = { K = 10 } }))
    lu.assertEquals(described(place, { params = { K = 9 } }), described(0, { params = { K = 9 } }))
    lu.assertEquals(described(place, { params = { z = 1 } }), described(0, { params = { z = 1 } }))
  end
end

function TestOverwriting.test_result_and_trace_stay()
  local plain = assert(generate(overwriting(0), { tokens = 30, preset = "long" }))
  for place = 1, 6 do
    local trace = os.tmpname()
    local result, failure = generate(overwriting(place), { tokens = 30, preset = "long", trace = trace })
    lu.assertNotNil(result, failure and failure.message)
    lu.assertEquals(result.tokens, plain.tokens)
    lu.assertEquals(result.params, plain.params)
    lu.assertEquals(result.stats.output_hash, plain.stats.output_hash)
    for line in io.lines(trace) do lu.assertNotNil(dt.json.decode(line)) end
    os.remove(trace)
  end
end

-- Metamethods that answer differently each time they are asked.
function TestOverwriting.test_a_definition_is_read_once_and_raw()
  refused("name is missing", generate [[
    local n = 0
    local t = setmetatable({}, { __index = function() n = n + 1 return n == 1 and "name" or {} end, __pairs = error })
    return require("dt.policy").define(t)]])
  local result = assert(generate [[
    local list = { { "K", 1 } }
    setmetatable(list, { __len = function() return 1 << 40 end, __index = error, __pairs = error })
    local values = setmetatable({ K = 2 }, { __pairs = function() return function() return {}, {} end end })
    return require("dt.policy").define { name = "x", params = list, presets = { two = values } }]])
  lu.assertEquals(result.params, { K = 1 })
end

TestEscapes = {}

function TestEscapes.test_texts_of_a_policy_are_shown_without_control_characters()
  local evil = "\27[31m\r\n\t\u{9b}31m\0"
  local source = ([[
    local policy = require "dt.policy"
    local evil = %q
    return policy.define { name = "n" .. evil, doc = "d" .. evil, uses = { draft = false },
      params = { { "p" .. evil, "v" .. evil, doc = evil, one_of = { "v" .. evil } } },
      presets = { ["q" .. evil] = {} } }
  ]]):format(evil)
  local trace = os.tmpname()
  local result = assert(generate(source, { trace = trace }))
  lu.assertEquals(result.policy:find "%c", nil)
  local file = assert(io.open(trace, "rb"))
  local text = file:read "a"
  file:close()
  os.remove(trace)
  lu.assertNil(text:gsub("\n", ""):find "%c")
  lu.assertNil(text:find "\u{9b}")
  local info = assert(pair:policy { source = source })
  lu.assertNil((info.name .. info.doc .. info.params[1].doc .. info.params[1].range):find "%c")
end

os.exit(lu.LuaUnit.run())
