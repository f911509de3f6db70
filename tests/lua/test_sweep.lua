-- dt.sweep: grids as they are typed, and the ranking of what was run.
local lu = require "luaunit"
local dt = require "dt"
local sweep = require "dt.sweep"

local K = { name = "K", type = "integer", min = 1, max = 64 }
local TAU = { name = "tau", type = "number", min = 0, max = 1 }

TestGrids = {}

function TestGrids.test_values_are_lists_and_ranges_with_both_ends()
  lu.assertEquals(sweep.values(K, "3"), { 3 })
  lu.assertEquals(sweep.values(K, "1,2,8..11"), { 1, 2, 8, 9, 10, 11 })
  lu.assertEquals(sweep.values(K, "2..9:3"), { 2, 5, 8 })
  lu.assertEquals(sweep.values(K, "3..1:-1"), { 3, 2, 1 })
  lu.assertEquals(sweep.values(TAU, "0.1..0.5:0.1"), { 0.1, 0.2, 0.3, 0.4, 0.5 })
  lu.assertEquals(sweep.values({ name = "on", type = "boolean" }, "true,false"), { true, false })
  lu.assertEquals(sweep.values({ name = "s", type = "string" }, "a..b,c"), { "a..b", "c" })
end

function TestGrids.test_a_value_that_is_none_is_named()
  local function refuses(declared, text, message)
    lu.assertEquals({ sweep.values(declared, text) }, { nil, message })
  end
  refuses(K, "1,65", "K = 65 is out of range: 1..64")
  refuses(K, "60..65", "K = 65 is out of range: 1..64")
  refuses(K, "0.5..2", "K = 0.5 is not an integer")
  refuses(K, "1,,2", "K =  is not an integer")
  refuses(TAU, "0.5..0.1", "tau: '0.5..0.1' is not a range FROM..TO or FROM..TO:STEP")
  refuses(TAU, "0..1:0", "tau: '0..1:0' is not a range FROM..TO or FROM..TO:STEP")
  refuses(TAU, "0..one", "tau: '0..one' is not a range FROM..TO or FROM..TO:STEP")
end

function TestGrids.test_each_policy_takes_the_names_it_declares()
  local pair <close> = assert(dt.fake { vocab = 9 })
  local arms, left_out = sweep.arms(pair, { "linear", "fixed_tree" }, nil, { "K=1,2", "D=3..5", "B=1,2" })
  lu.assertEquals(#arms, 2 + 3 * 2)
  lu.assertEquals(left_out, 0)
  lu.assertEquals(arms[2], { policy = "linear", params = { K = 2 }, axes = { K = 2 } })
  lu.assertEquals(arms[8].params, { D = 5, B = 2 })
  lu.assertEquals(#sweep.arms(pair, { "linear" }, nil, {}), 1) -- as it comes
end

function TestGrids.test_combinations_that_contradict_themselves_are_left_out_and_counted()
  local pair <close> = assert(dt.fake { vocab = 9 })
  local arms, left_out = sweep.arms(pair, { "dynatree" }, "narrow", { "D0=2..4", "D_max=3,4" })
  lu.assertEquals(#arms, 3)
  lu.assertEquals(left_out, 3)
  lu.assertEquals(arms[1].preset, "narrow")
end

TestRanking = {}

local function run(arm, prompt, speed, accepted)
  return { arm = arm, set = "s", prompt = prompt, tokens = 10, ["repeat"] = 1,
           stats = { tokens_per_second = speed, tokens_per_iteration = 2, drafted = accepted and 10 or 0,
                     accepted = accepted or 0 } }
end

function TestRanking.test_the_fastest_against_plain_decoding_of_the_same_text_comes_first()
  local list = sweep.rank { run("ar", "a", 100), run("ar", "b", 50), run("x", "a", 150, 6), run("x", "b", 100, 7),
                            run("y", "a", 300, 5), run("y", "b", 20, 5), run("z", "c", 999, 1) }
  lu.assertEquals(#list, 2) -- z has nothing to be compared with
  lu.assertEquals(list[1].arm, "x")
  lu.assertEquals(list[1].speedup, 1.75)
  lu.assertEquals(list[1].acceptance, 0.65)
  lu.assertEquals(list[1].tokens_per_second, 125)
  lu.assertEquals(list[2].speedup, 1.7)
  local _, lines = sweep.table(list, 1):gsub("[^\n]+", "")
  lu.assertEquals(lines, 2)
  lu.assertStrContains(sweep.table(list, 5), "1.750x")
  lu.assertStrContains(sweep.table(list, 5), "(speeds: prompt included)\n")
end

function TestRanking.test_an_arm_that_drafts_nothing_has_no_acceptance()
  local list = sweep.rank { run("ar", "a", 100), run("x", "a", 100) }
  lu.assertNil(list[1].acceptance)
  lu.assertStrContains(sweep.table(list, 1), " - ")
end

os.exit(lu.LuaUnit.run())
