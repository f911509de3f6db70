-- What policies have in addition to trees: bonus, temp, drafted, lists as parameters, init's time, required files, and
-- messages about unknown names.
local lu = require "luaunit"
local dt = require "dt"

local HEAD = [[
local policy = require "dt.policy"
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message:sub(-#text) ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
]]

local function pair_of() return assert(dt.fake { vocab = 12, context = 60, target = { [""] = { [5] = 1.0 } } }) end

local function run(source, how)
  local pair <close> = pair_of()
  local request = { policy = "test.lua", source = source and HEAD .. source .. "\nreturn P", prompt = " 1", tokens = 3 }
  for key, value in pairs(how or {}) do request[key] = value end
  return pair:generate(request)
end

local function passes(source, how)
  local result, err = run(source, how)
  lu.assertNil(err and err.message)
  return result
end

local function fails(source, text, how)
  local result, err = run(source, how)
  lu.assertNil(result)
  lu.assertStrContains(err.message, text)
end

local DEFINE = "local P = policy.define { name = 'test' }\n"

TestDoors = {}

function TestDoors.test_out_has_the_bonus_token()
  passes(DEFINE .. [[
    function P:draft(tree) tree:add(0, 5) tree:add(0, 6) end
    function P:step(seq)
      self:draft(seq.tree)
      local out, before = seq:verify_tree(), seq:length()
      if out.bonus ~= 5 then error(out.bonus) end
      local n = seq:commit()
      if n > out.accepted and seq:token(before + n) ~= out.bonus then error "not the last token" end
    end]])
end

function TestDoors.test_seq_has_the_temperature()
  for _, temp in ipairs { 0.0, 0.5, 1.0 } do
    passes(DEFINE .. ("function P:draft(tree) if tree.seq.temp ~= %s then error(tree.seq.temp) end end"):format(temp),
           { temp = temp > 0 and temp or nil })
  end
end

function TestDoors.test_seq_says_whether_there_is_a_draft_model()
  local source = HEAD .. [[
    local P = policy.define { name = "p", uses = { draft = %s } }
    function P:draft(tree)
      if tree.seq.drafts ~= %s then error(tostring(tree.seq.drafts)) end
      if tree.seq.drafts then tree:draft_step(0) else
        raises('or there is no draft model', tree.draft_step, tree, 0)
      end
    end
    return P]]
  for _, there in ipairs { true, false } do
    for uses, drafts in pairs { ["true"] = true, ["false"] = false, ['"optional"'] = there } do
      local pair <close> = assert(dt.fake { vocab = 12, context = 60, draft = there and {} })
      local result, err = pair:generate { source = source:format(uses, drafts), prompt = " 1", tokens = 3 }
      if uses == "true" and not there then
        lu.assertStrContains(err.message, "p needs a draft model: give --draft DIR")
      else
        lu.assertNil(err and err.message)
        lu.assertEquals(result.draft ~= nil, drafts)
      end
    end
  end
  fails('P = policy.define { name = "p", uses = { draft = "maybe" } }',
        'policy.define: p: uses.draft is not true, false or "optional"')
end

function TestDoors.test_drafted_says_which_nodes_have_candidates()
  passes(DEFINE .. [[
    function P:draft(tree)
      if tree:depth_room() == 0 then return end
      tree:add(0, 5) tree:add(0, 6)
      tree:draft_step { 2 }
      for u = 0, 2 do if tree:drafted(u) ~= (u ~= 1) then error(u) end end
      raises("tree:drafted: u: there is no node 3 (the tree has 0..2)", tree.drafted, tree, 3)
      raises("tree:drafted: u: there is no node -1 (the tree has 0..2)", tree.drafted, tree, -1)
    end]])
end

function TestDoors.test_a_candidate_has_a_number_from_1_to_as_many_as_there_are()
  passes(DEFINE .. [[
    function P:draft(tree)
      if tree:depth_room() == 0 then return end
      tree:draft_step(0)
      local n = 1
      while tree:candidate(0, n + 1) do n = n + 1 end
      if not tree:candidate(0, 1) or not tree:candidate(0, n) or tree:candidate(0, n + 1) then error(n) end
      if tree:candidate(0, math.maxinteger) then error "beyond all" end
      raises("tree:candidate: i = 0 is below 1", tree.candidate, tree, 0, 0)
      raises("tree:candidate: i = -9223372036854775808 is below 1", tree.candidate, tree, 0, math.mininteger)
    end]])
end

-- ---- lists ---------------------------------------------------------------------------------------------------------

local function with_list(declaration)
  return ("local P = policy.define { name = 'test', params = { { 'w', %s } } }\n"):format(declaration)
    .. "function P:init() error('<' .. #self.w .. ':' .. table.concat(self.w, ' ') .. '>', 0) end"
end

local function list_is(declaration, text, params) fails(with_list(declaration), text, { params = params }) end

function TestDoors.test_a_list_is_set_as_a_text_or_a_table()
  list_is("{ 3, 2, 1 }", "<3:3 2 1>")
  list_is("{ 3, 2, 1 }", "<2:7 8>", { w = "7,8" })
  list_is("{ 3, 2, 1 }", "<2:7 8>", { w = { 7, 8 } })
  list_is("{ 3, 2, 1 }", "<1:7>", { w = 7 })
  list_is("{ 0.5 }", "<2:0.25 3.0>", { w = "0.25,3" })
end

function TestDoors.test_a_list_that_is_none_is_bad_usage()
  for _, text in ipairs { "", ",", "1,", ",1", "1,,2", "a", "1 2", "nan", "{}" } do
    list_is("{ 3 }", ("test: w = %s is not a list of numbers, such as 3,2,1"):format(text), { w = text })
  end
  list_is("{ 3 }", "test: w: 1.5 = 1.5 is not an integer", { w = "1.5" })
  list_is("{ 3 }", "test: w: 1,inf = inf is not an integer", { w = "1,1e999" })
end

function TestDoors.test_bounds_are_those_of_each_number()
  list_is("{ 3 }, min = 1, max = 4", "<2:1 4>", { w = "1,4" })
  list_is("{ 3 }, min = 1, max = 4", "test: w: 1,5 = 5 is out of range: 1..4", { w = "1,5" })
  list_is("{ 3 }, min = 1, max = 4", "test: w: 0,4 = 0 is out of range: 1..4", { w = "0,4" })
  list_is("{ 5 }, max = 4", "policy.define: test: w: 5 = 5 is out of range: ..4")
end

function TestDoors.test_a_list_has_1_to_64_numbers()
  local function ones(n) return ("1,"):rep(n - 1) .. "1" end
  list_is("{ 3 }", "<64:", { w = ones(64) })
  list_is("{ 3 }", "test: w has 65 numbers, more than 64", { w = ones(65) })
  list_is("{ " .. ones(64) .. " }", "<64:")
  list_is("{ " .. ones(65) .. " }", "w has 65 numbers, more than 64")
  list_is("{}", "policy.define: test: w =  is not a list of numbers")
  list_is("nil, type = 'list'", "policy.define: test: w: a list needs a default, such as { 3, 2, 1 }")
  list_is("{ 3 }, one_of = { 1 }", "policy.define: test: w: one_of is not for lists")
end

-- What is given stays in the result, whatever the policy does with its tables.
function TestDoors.test_the_result_keeps_the_list_that_was_given()
  local result = passes([[
    local default = { 3, 2, 1 }
    local P = policy.define { name = "test", params = { { "w", default } }, presets = { p = { w = { 9 } } },
      check = function(p) p.w[1] = "\"," p.w = nil default[1] = {} end }
    function P:init() self.w[1] = 12345 end]])
  lu.assertEquals(result.params, { w = "3,2,1" })
  lu.assertEquals(passes("local P = policy.define { name = 'test', params = { { 'w', { 1 } } } }",
                         { params = { w = { 4, 5 } } }).params, { w = "4,5" })
end

-- ---- unknown names -------------------------------------------------------------------------------------------------

function TestDoors.test_a_method_that_nothing_calls_is_an_error()
  for wrong, right in pairs { Draft = "draft", DRAFT = "draft", drat = "draft", draftt = "draft", inti = false,
                              Init = "init", int = "init", observes = "observe", Observe = "observe", stepp = "step",
                              helper = false, drafting = false, restart = false, st = false, propose = false } do
    local source = DEFINE .. ("function P:%s() end"):format(wrong)
    if right then
      fails(source, ("test: a method '%s' would never be called: did you mean '%s'?"):format(wrong, right))
    else
      passes(source)
    end
  end
  passes(DEFINE .. "P.drafts = 3 P.Draft = 'no function'")
end

function TestDoors.test_what_a_tree_and_a_seq_have_not_is_named()
  passes(DEFINE .. [[
    function P:draft(tree)
      local function get(object, name) return object[name] end
      raises("a tree has no 'expand': did you mean policy.expand?", get, tree, "expand")
      raises("a tree has no 'brnch': did you mean 'branch'?", get, tree, "brnch")
      raises("a tree has no 'Depth': did you mean 'depth'?", get, tree, "Depth")
      raises("a tree has no 'draftstep': did you mean 'draft_step'?", get, tree, "draftstep")
      raises("a tree has no 'something_else_entirely'", get, tree, "something_else_entirely")
      raises("a tree has no field [number]", get, tree, 1)
      raises("a seq has no 'lenght': did you mean 'length'?", get, tree.seq, "lenght")
      raises("a seq has no '" .. ("x"):rep(300) .. "'", get, tree.seq, ("x"):rep(300))
    end]])
  passes([[
    local P = policy.define { name = "test", scope = "batch" }
    function P:draft(batch)
      local function get(object, name) return object[name] end
      raises("a batch has no 'comit': did you mean 'commit'?", get, batch, "comit")
      if batch[2] ~= nil or batch[0] ~= nil then error "trees that are not there" end
    end]])
end

function TestDoors.test_a_misspelt_field_of_out_is_named()
  passes(DEFINE .. [[
    function P:observe(tree, out)
      local function get(name) return out[name] end
      raises("out has no 'acceptd': did you mean 'accepted'?", get, "acceptd")
      raises("out has no 'drafted_ms': did you mean 'draft_ms'?", get, "drafted_ms")
      raises("out has no 'candidate': did you mean 'candidates'?", get, "candidate")
      raises("out has no 'speed'", get, "speed")
      raises("out has no field [number]", get, 1)
      out.mine = 3
      if out.mine ~= 3 then error "what a policy puts there stays" end
      for _, name in next, { "drafted", "depth", "accepted", "bonus", "committed", "draft_ms", "verify_ms", "commit_ms",
                             "path", "candidates" } do
        if out[name] == nil then error(name) end
      end
      if getmetatable(out) ~= false then error "its metatable is the host's" end
    end]])
  fails(DEFINE .. "function P:observe(tree, out) self.n = out.acceptd + 1 end",
        "test.lua:8: out has no 'acceptd': did you mean 'accepted'?")
end

function TestDoors.test_what_is_not_in_the_box_is_said_so()
  passes([[
    raises("string.match does not exist for policies; string has: byte, char, format, len, lower, rep, reverse, "
             .. "sub, upper",
           function() return string.match("a", "b") end)
    raises("table.move does not exist for policies; table has: concat, insert, pack, remove, sort, unpack",
           function() return table.move end)
    raises("utf8.x does not exist for policies; utf8 has: char, charpattern, codepoint, codes, len, offset",
           function() return utf8.x end)
    raises("undefined variable 'nothing'", function() return nothing end)
    raises("string.number does not exist for policies; string has: byte, char, format, len, lower, rep, reverse, "
             .. "sub, upper",
           function() return string[1] end)
    string.match = function() return 7 end
    if ("a"):match "b" ~= 7 or string.match() ~= 7 then error "what a policy puts there stays" end
    math[("x"):rep(41)], math[("x"):rep(40)] = 1, 1
    local _, message = pcall(function() return math.none end)
    if message:sub(-40) ~= ("x"):rep(40) or message:sub(-41) ~= " " .. ("x"):rep(40) then error(message) end
  ]] .. DEFINE)
  fails(DEFINE .. "function P:draft() return (self.name or 'x'):gsub('a', 'b') end",
        "test.lua:8: string.gsub does not exist for policies; string has: byte, char")
  for _, name in ipairs { "io", "os", "debug", "package", "coroutine", "load", "loadfile", "dofile", "xpcall",
                          "collectgarbage", "warn", "loadstring" } do
    fails("local x = " .. name .. "\n" .. DEFINE, ("undefined variable '%s': policies may use only"):format(name))
  end
end

-- ---- init ----------------------------------------------------------------------------------------------------------

-- A turn of the loop is one instruction.
local LOOP = "for _ = 1, %d000000 do end"

function TestDoors.test_init_may_take_50_times_what_a_step_may()
  passes(DEFINE .. "function P:init() " .. LOOP:format(60) .. " end")
  fails(DEFINE .. "function P:draft() " .. LOOP:format(21) .. " end",
        "policy ran longer than 2 s (or 20 million instructions) in draft")
  fails(LOOP:format(21) .. " " .. DEFINE, "policy ran longer than 2 s (or 20 million instructions) in its file")
end

-- ---- required files ------------------------------------------------------------------------------------------------

local folder

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
end

function TestDoors.setUp()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
end

function TestDoors.tearDown() os.execute("rm -r " .. folder) end

local function next_to(source)
  write("main.lua", HEAD .. source .. "\nreturn P")
  return { policy = folder .. "/main.lua" }
end

function TestDoors.test_a_file_beside_the_policy_is_a_module()
  write("helper.lua", "local policy = require 'dt.policy' counted = (rawget(_G, 'counted') or 0) + 1\n"
    .. "return { five = policy.clip(9, 1, 5) }")
  write("nothing.lua", "")
  local result = passes(nil, next_to(DEFINE .. [[
    local helper = require "helper"
    if require "helper" ~= helper or counted ~= 1 then error "loaded twice" end
    if require "nothing" ~= true then error "a module without a value" end
    function P:draft(tree) tree:add(0, helper.five) end]]))
  lu.assertTrue(result.stats.accepted > 0)
end

function TestDoors.test_what_is_wrong_with_a_module_is_told()
  write("broken.lua", "local x = = 1")
  write("fails.lua", "\nerror 'no'")
  write("loop.lua", "while true do end")
  write("circle.lua", "return require 'circle'")
  write("globals.lua", "return os.execute 'true'")
  for name, message in pairs {
    broken = "broken.lua:1: unexpected symbol near '='", fails = "fails.lua:2: no",
    loop = "policy ran longer than 2 s (or 20 million instructions) in its file",
    circle = "require: 'circle' failed before, or requires itself",
    globals = "undefined variable 'os'", missing = "missing.lua: cannot read the module: No such file",
    ["../x"] = "require: expected \"dt.policy\", or \"NAME\" for the file NAME.lua next to the policy file",
    ["a.b"] = "require: expected \"dt.policy\"", ["a\\0b"] = "require: expected \"dt.policy\"",
    ["-x"] = "require: expected \"dt.policy\"",
    [("x"):rep(65)] = "require: expected \"dt.policy\"", [("x"):rep(64)] = "cannot read the module",
  } do
    fails(nil, message, next_to(DEFINE .. ("require '%s'"):format(name)))
  end
end

function TestDoors.test_modules_are_for_the_time_when_the_file_is_read()
  write("helper.lua", "return 1")
  fails(nil, "main.lua:8: require: 'helper' is not loaded: only a policy file can require other files, while it is "
        .. "loaded", next_to(DEFINE .. "function P:draft() require 'helper' end"))
  passes(nil, next_to("local h = require 'helper'\n" .. DEFINE
    .. "function P:draft() if require 'helper' ~= h then error() end end"))
  fails(DEFINE .. "require 'helper'", "require: 'helper' is not loaded")
end

function TestDoors.test_all_files_together_have_64_KiB()
  local main = next_to(DEFINE .. "require 'large'")
  local file = assert(io.open(main.policy, "rb"))
  local left = 65536 - #file:read "a"
  file:close()
  write("large.lua", (" "):rep(left))
  passes(nil, main)
  write("large.lua", (" "):rep(left + 1))
  fails(nil, ("%d bytes are more than the maximum of %d"):format(left + 1, left), main)
  write("a.lua", "return " .. (" "):rep(40000) .. "1")
  write("b.lua", "return " .. (" "):rep(40000) .. "1")
  fails(nil, "bytes are more than", next_to(DEFINE .. "require 'a' require 'b'"))
end

function TestDoors.test_the_policys_hash_is_of_its_modules_too()
  local pair <close> = pair_of()
  local function hash(text)
    write("helper.lua", text)
    return assert(pair:policy(next_to("require 'helper'\n" .. DEFINE))).source
  end
  local first = hash "return 1"
  lu.assertEquals(hash "return 1", first)
  lu.assertNotEquals(hash "return 2", first)
end

os.exit(lu.LuaUnit.run())
