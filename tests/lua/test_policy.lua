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
