-- dt.tune: the settings that are tried, and halving.
local lu = require "luaunit"
local dt = require "dt"
local tune = require "dt.tune"

local function info(source) return assert(assert(dt.fake { vocab = 9 }):policy { source = source }) end

local function defined(params)
  return ('return require "dt.policy".define { name = "p", params = { %s } }'):format(params)
end

local function names(space)
  local list = {}
  for i, p in ipairs(space) do list[i] = p.name end
  return table.concat(list, " ")
end

TestSpace = {}

function TestSpace.test_what_is_searched_follows_from_the_declaration()
  lu.assertEquals(names(tune.space(info(defined [[
    { "a", 1, min = 1, max = 9 }, { "b", 1 }, { "c", 1, min = 0 }, { "d", true }, { "e", "x" },
    { "f", "x", one_of = { "x", "y" } }, { "g", 1, min = 1, max = 9, tune = false }, { "h", 0.5, tune = { 0.1, 2 } },
    { "i", false, tune = false }, { "j", nil, type = "integer", min = 1, max = 2 } ]]))), "a d f h j")
end

function TestSpace.test_a_tune_that_says_nothing_is_a_mistake_in_the_definition()
  local pair <close> = assert(dt.fake { vocab = 9 })
  for _, bad in ipairs { "true", "{}", "{ 1 }", "{ 3, 2 }", "{ 2, 10 }", "'x'" } do
    local ok, failure = pair:policy { source = defined('{ "a", 1, min = 1, max = 9, tune = ' .. bad .. " }") }
    lu.assertNil(ok)
    lu.assertStrContains(failure.message, "a: tune is not false or, for a number, {low, high} within its range")
  end
end

TestDrawing = {}

function TestDrawing.test_every_seed_has_numbers_of_its_own()
  local known = {}
  for _, seed in ipairs { 0, 1, 2, -1, math.mininteger } do
    local random = tune.random(seed)
    local first = random()
    lu.assertTrue(first >= 0 and first < 1 and random() ~= first)
    lu.assertNil(known[first])
    known[first] = true
  end
end

local SPACE = tune.space(info(defined [[
  { "K", 8, min = 1, max = 256, tune = { 1, 64 } }, { "tau", 0.1, min = 0, max = 1 }, { "n", 3, min = 2, max = 4 },
  { "on", true }, { "mode", "a", one_of = { "a", "b", "c" } } ]]))

local function anything() return true end

function TestDrawing.test_values_lie_in_the_space_and_no_setting_comes_twice()
  local list, seen, low = tune.draw(SPACE, 300, tune.random(7), anything, {}), {}, 0
  lu.assertEquals(#list, 300)
  for _, s in ipairs(list) do
    lu.assertTrue(math.type(s.K) == "integer" and s.K >= 1 and s.K <= 64)
    lu.assertTrue(math.type(s.tau) == "float" and s.tau >= 0 and s.tau <= 1)
    lu.assertTrue(s.n >= 2 and s.n <= 4)
    lu.assertEquals(type(s.on), "boolean")
    lu.assertNotNil(({ a = 1, b = 1, c = 1 })[s.mode])
    local key = ("%d %g %d %s %s"):format(s.K, s.tau, s.n, s.on, s.mode)
    lu.assertNil(seen[key])
    seen[key] = true
    if s.K <= 8 then low = low + 1 end
  end
  lu.assertTrue(low > 110 and low < 200) -- on a logarithmic scale half of 1..64 is 1..8
end

function TestDrawing.test_the_same_seed_draws_the_same()
  local function drawn(seed) return tune.draw(SPACE, 20, tune.random(seed), anything, {}) end
  lu.assertEquals(drawn(3), drawn(3))
  lu.assertNotEquals(drawn(3), drawn(4))
end

function TestDrawing.test_what_the_policy_refuses_is_not_drawn_and_a_small_space_ends()
  local space = tune.space(info(defined '{ "K", 1, min = 1, max = 6 }'))
  local function even(s) return s.K % 2 == 0 end
  lu.assertEquals(#tune.draw(space, 50, tune.random(1), even, {}), 3)
end

function TestDrawing.test_neighbours_differ_in_one_to_three_parameters_and_not_by_much()
  local near = { K = 16, tau = 0.5, n = 3, on = true, mode = "a" }
  local list = tune.draw(SPACE, 50, tune.random(1), anything, { ["K=16 mode=a n=3 on=true tau=0.5"] = true }, { near })
  for _, s in ipairs(list) do
    local changed = 0
    for name, value in pairs(near) do changed = changed + (s[name] ~= value and 1 or 0) end
    lu.assertTrue(changed >= 1 and changed <= 3)
    lu.assertTrue(s.K >= 12 and s.K <= 20 and s.tau >= 0.375 and s.tau <= 0.625)
  end
end

function TestDrawing.test_the_first_settings_are_the_defaults_then_the_presets_then_drawn_ones()
  local pair <close> = assert(dt.fake { vocab = 9 })
  local list, space, allowed = tune.first(pair, "dynatree", 12, tune.random(1), {})
  lu.assertEquals(#list, 12)
  lu.assertEquals(list[1].rho_stop, 0.1)
  lu.assertEquals(list[2].rho_stop, 0.3) -- narrow; as_published differs only in what is not searched
  lu.assertNil(list[1].rebuild)
  lu.assertFalse(allowed { D0 = 9, D_max = 3 })
  lu.assertNotNil(space[1])
  lu.assertEquals({ tune.first(pair, "ar", 4, tune.random(1), {}) }, { nil, "ar has no parameters to tune" })
  lu.assertStrContains(select(2, tune.first(pair, "none", 4, tune.random(1), {})), "no policy 'none'")
end

TestHalving = {}

function TestHalving.test_the_better_half_runs_twice_as_many_new_prompts()
  lu.assertEquals(tune.rounds(10, 7), { { settings = 10, first = 1, last = 1 }, { settings = 5, first = 2, last = 3 },
                                        { settings = 3, first = 4, last = 7 } })
  lu.assertEquals(tune.rounds(4, 9), { { settings = 4, first = 1, last = 1 }, { settings = 2, first = 2, last = 3 } })
  lu.assertEquals(tune.rounds(1, 5), { { settings = 1, first = 1, last = 1 } })
end

function TestHalving.test_the_best_comes_first_and_every_setting_is_ranked()
  local measured = {}
  local settings = { "d", "a", "c", "b", "e" }
  local ranked = tune.halve(settings, 3, function(group, i)
    measured[i] = table.concat(group)
    local scores = {}
    for k, s in ipairs(group) do scores[k] = -s:byte() end
    return scores
  end)
  lu.assertEquals(measured, { "dacbe", "abc", "abc" })
  lu.assertEquals(table.concat(ranked), "abcde")
end

function TestHalving.test_a_failure_ends_it_with_its_reason()
  lu.assertEquals({ tune.halve({ "x" }, 3, function() return nil, "why", "policy" end) }, { nil, "why", "policy" })
end

TestScores = {}

-- A run of 10 tokens that takes `ms` ms after its prompt pass of 100 ms.
local function run(arm, prompt, number, ms, shard)
  return { arm = arm, prompt = prompt, params = { K = 1 }, ["repeat"] = number, shard = shard,
           stats = { tokens_per_second = 10 / (100 + ms) * 1000, tokens_per_iteration = 2, iterations = 5,
                     time_ms = { prompt = 100 } } }
end

local TEXTS = { { name = "s/1" }, { name = "s/2" } }

function TestScores.test_the_fastest_repeat_counts_and_prompt_passes_do_not()
  local runs = { run("ar", "s/1", 1, 40), run("ar", "s/1", 2, 50), run("ar", "s/2", 1, 60), run("ar", "s/2", 2, 60),
                 run("a", "s/1", 1, 20), run("a", "s/1", 2, 10), run("a", "s/2", 1, 30), run("a", "s/2", 2, 99) }
  local scores = tune.scores(runs, TEXTS, 1, 2)
  lu.assertEquals(#scores, 1)
  lu.assertEquals({ scores[1].arm, scores[1].setting }, { "a", { K = 1 } })
  lu.assertAlmostEquals(scores[1].mean, (4 + 2) / 2, 1e-9)
  lu.assertAlmostEquals(tune.scores(runs, TEXTS, 2, 1)[1].mean, (5 + 60 / 99) / 2, 1e-9)
  lu.assertEquals(tune.scores(runs, TEXTS, 1, 3), {}) -- nobody has run a third time
  table.remove(runs)
  lu.assertEquals(tune.scores(runs, TEXTS, 1, 2), {}) -- not on all of the texts
end

function TestScores.test_an_arm_is_compared_with_plain_decoding_of_its_own_shard()
  local runs = { run("ar", "s/1", 1, 40, "1/2"), run("ar", "s/1", 1, 80, "2/2"), run("a", "s/1", 1, 20, "1/2"),
                 run("a", "s/1", 1, 20, "2/2"), run("b", "s/1", 1, 20) }
  local scores = tune.scores(runs, { TEXTS[1] }, 1, 1)
  lu.assertEquals(#scores, 2) -- b has none to be compared with
  for i, mean in ipairs { 2, 4 } do
    lu.assertEquals(scores[i].shard, i .. "/2")
    lu.assertAlmostEquals(scores[i].mean, mean, 1e-9)
  end
end

function TestScores.test_a_setting_is_kept_unless_the_defaults_or_plain_decoding_are_faster()
  local function faster(tuned, defaults) return tune.faster { tuned = tuned, defaults = defaults } end
  lu.assertNil(faster(1.0, 1.0))
  lu.assertNil(faster(1.5, 1.4))
  lu.assertEquals(faster(1.4, 1.5), "the defaults")
  lu.assertEquals(faster(0.999, 0.999), "plain decoding")
  lu.assertEquals(faster(0.61, 0.9), "the defaults and plain decoding")
end

os.exit(lu.LuaUnit.run())
