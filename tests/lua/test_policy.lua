-- dt.policy's helpers, and parameters given as values.
local lu = require "luaunit"
local dt = require "dt"
local policy = require "dt.policy"

TestHelpers = {}

function TestHelpers.test_clip_keeps_a_value_within_its_bounds()
  lu.assertEquals(policy.clip(5, 1, 3), 3)
  lu.assertEquals(policy.clip(-5, 1, 3), 1)
  lu.assertEquals(policy.clip(2, 1, 3), 2)
end

function TestHelpers.test_round_takes_halves_up()
  for x, rounded in pairs { [0.5] = 1, [-0.5] = 0, [2.49] = 2, [2.5] = 3, [-1.51] = -2 } do
    lu.assertEquals(policy.round(x), rounded)
    lu.assertEquals(math.type(policy.round(x)), "integer")
  end
end

-- A tree of one node in which the draft model's scores and own words are drawn at random; what comes is drawn from the
-- same model with the numbers `truth`, which are to be learned.
local function taught(truth, rounds)
  local sharpen, random, own, said, now, first = policy.sharpen(), 1, {}, {}, nil, nil
  local function uniform()
    random = random * 16807 % 2147483647
    return random / 2147483647
  end
  local function probabilities(p) -- of three candidates, as tree:sharpen says
    local sum, list = 0, {}
    for i = 1, 3 do
      list[i] = { id = i, weight = math.exp((said[i] + p.lean * own[i]) / 0.6) }
      sum = sum + list[i].weight
    end
    table.sort(list, function(x, y) return x.weight > y.weight end)
    local top = list[1].weight / sum
    local left = 1 / (1 + math.exp(p.slope * math.log(top / (1 - top)) + p.shift))
    for i = 3, 1, -1 do list[i].p = i == 1 and 1 - left or left * list[i].weight / (sum - list[1].weight) end
    return list
  end
  local tree = { seq = { coupled = true } }
  function tree.sharpen(_, scale, lean, slope, shift)
    lu.assertEquals(scale, 0.6)
    now = probabilities { lean = lean, slope = slope, shift = shift }
  end
  function tree.candidate(_, _, i)
    if now[i] then return now[i].id, math.log(now[i].p), own[now[i].id] end
  end
  for _ = 1, rounds do
    for i = 1, 3 do own[i], said[i] = -4 * uniform(), 2 * uniform() end
    sharpen:apply(tree)
    local left, came = uniform(), nil
    for _, c in ipairs(probabilities(truth)) do
      left = left - c.p
      if left < 0 and not came then came = c.id end
    end
    for i = 1, 3 do if now[i].id == came then first = i end end
    sharpen:learn(tree, 0, first)
  end
  return sharpen
end

function TestHelpers.test_sharpen_learns_what_makes_guesses_come_true_as_often_as_they_say()
  for _, truth in ipairs { { lean = 0, slope = 1, shift = 0.8 }, { lean = 0, slope = 0.6, shift = 0 } } do
    local learned = taught(truth, 20000)
    lu.assertAlmostEquals(learned.lean, truth.lean, 0.03)
    lu.assertAlmostEquals(learned.slope, truth.slope, 0.1)
    lu.assertAlmostEquals(learned.shift, truth.shift, 0.1)
  end
  lu.assertAlmostEquals(taught({ lean = -0.2, slope = 1, shift = 0 }, 20000).lean, -0.2, 0.03)
  lu.assertAlmostEquals(taught({ lean = 0.2, slope = 1, shift = 0 }, 20000).lean, 0.2, 0.03)
end

function TestHelpers.test_sharpen_begins_less_sure_where_guesses_know_the_noise()
  for coupled, slope in pairs { [true] = 0.7, [false] = 1 } do
    local said
    policy.sharpen():apply { seq = { coupled = coupled }, sharpen = function(_, ...) said = { ... } end }
    lu.assertEquals(said, { 0.6, 0, slope, 0 })
  end
end

function TestHelpers.test_what_sharpen_learns_has_bounds()
  local learned = taught({ lean = -1, slope = 1, shift = 0 }, 5000)
  lu.assertTrue(learned.lean >= -0.5 and learned.lean < -0.45)
  lu.assertTrue(taught({ lean = 0, slope = 1, shift = 9 }, 20000).shift <= 6)
end

function TestHelpers.test_a_window_forgets_what_is_older_than_its_size()
  local window = policy.window(3)
  lu.assertEquals(window:n(), 0)
  lu.assertNil(window:mean())
  for _, x in ipairs { 1, 2 } do window:push(x) end
  lu.assertEquals({ window:n(), window:mean() }, { 2, 1.5 })
  for _, x in ipairs { 3, 4, 5 } do window:push(x) end
  lu.assertEquals({ window:n(), window:mean() }, { 3, 4.0 })
  lu.assertErrorMsgContains("size must be an integer of at least 1", policy.window, 0)
end

TestParameters = {}

local KNOBS = [[
local policy = require "dt.policy"
local P = policy.define { name = "knobs", uses = { draft = false },
  params = { { "n", 1 }, { "x", 0.5 }, { "on", true }, { "s", "a" }, { "maybe", nil, type = "integer" } },
  presets = { two = { n = 2, maybe = 7 } } }
function P:init() self.n = self.n + 100 end
return P]]

function TestParameters.setUp() TestParameters.pair = assert(dt.fake { vocab = 9, context = 99 }) end

function TestParameters.tearDown() TestParameters.pair:close() end

local function params_of(given, preset)
  local result, err = TestParameters.pair:generate { source = KNOBS, prompt = " 1", tokens = 2, params = given,
                                                     preset = preset }
  return result and result.params, err
end

function TestParameters.test_the_result_keeps_those_given_not_those_adapted()
  lu.assertEquals(params_of(), { n = 1, x = 0.5, on = true, s = "a" })
end

function TestParameters.test_values_keep_their_precision()
  local third = 1 / 3
  lu.assertEquals(params_of { n = math.maxinteger, x = third, on = false, s = 'q"ü', maybe = -1 },
                  { n = math.maxinteger, x = third, on = false, s = 'q"ü', maybe = -1 })
  lu.assertEquals(params_of({ n = 3.0 }, "two").n, 3)
  lu.assertEquals(params_of({}, "two"), { n = 2, x = 0.5, on = true, s = "a", maybe = 7 })
end

function TestParameters.test_bad_values_are_input_errors()
  local params, err = params_of { n = 1.5 }
  lu.assertNil(params)
  lu.assertEquals({ err.kind, err.message }, { "input", "knobs: n = 1.5 is not an integer" })
  lu.assertEquals(tostring(err), err.message)
  lu.assertEquals(select(2, params_of({}, "three")).message, "knobs: no preset 'three' (there are: two)")
  lu.assertEquals(select(2, params_of { n = {} }).message, "knobs: n =  is not an integer")
  lu.assertErrorMsgContains("params.n is a function", params_of, { n = print })
end

os.exit(lu.LuaUnit.run())
