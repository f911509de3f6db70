-- The bounds of an experiment's texts: dt.bound, on scripted pairs with scripted costs.
local bound = require "dt.bound"
local dt = require "dt"
local experiment = require "dt.experiment"
local lu = require "luaunit"

TestBound = {}

-- Passes of the target take 1 ms and 0.25 for each further row, those of the draft 0.5.
local COSTS = { contexts = { 128 }, rows = { 1, 2 }, target = { { 1.0, 1.25 } }, draft = { { 0.5, 0.625 } } }

-- After t comes t + 1. The draft model finds it likeliest up to 9, then second.
local function pair_of(options)
  local fields = { vocab = 100, context = 512, costs = COSTS, draft = {}, target = {} }
  for t = 1, 97 do
    fields.target[tostring(t)] = { [t + 1] = 1.0 }
    fields.draft[tostring(t)] = { [t + 1] = t < 9 and 0.6 or 0.3, [1] = t < 9 and 0.3 or 0.6 }
  end
  for key, value in pairs(options or {}) do fields[key] = value end
  return assert(dt.fake(fields))
end

local function of_text(pair, prompt, tokens)
  local request = { policy = "ar", prompt = prompt, tokens = tokens, ignore_eos = true }
  local costs, times = dt.measure_costs(pair)
  return assert(bound.of(pair, request, assert(pair:generate(request)), costs, times))
end

function TestBound.test_a_chain_is_as_long_as_guesses_are_right_and_pay()
  local pair <close> = pair_of()
  local of = of_text(pair, " 1", 8) -- 2 .. 9: a guess takes 0.75 ms, a pass 1
  lu.assertAlmostEquals(of.plain.ms, 8.0, 1e-9)
  lu.assertAlmostEquals(of.chain.ms, 1.0 + 7 * 0.75, 1e-9)
  lu.assertEquals(of.chain.iterations, 1)
  lu.assertEquals(of.tree, of.chain)
end

function TestBound.test_a_tree_has_the_second_guesses_too()
  local pair <close> = pair_of()
  local of = of_text(pair, " 10", 4)
  lu.assertEquals({ of.plain.ms, of.chain.ms, of.chain.iterations }, { 4.0, 4.0, 4 })
  lu.assertAlmostEquals(of.tree.ms, 1.0 + 3 * 0.75, 1e-9)
  lu.assertEquals(of.tree.iterations, 1)
end

function TestBound.test_copies_cost_a_row_and_no_pass()
  local loop = {}
  for t = 1, 4 do loop[tostring(t)] = { [t % 4 + 1] = 1.0 } end
  local pair <close> = pair_of { target = loop, draft = false }
  local of = of_text(pair, " 1 2 3 4 1", 5)
  lu.assertAlmostEquals(of.chain.ms, 1.0 + 4 * 0.25, 1e-9)
end

function TestBound.test_an_experiment_has_them_as_arms_of_their_own_and_goes_on()
  local pair <close> = pair_of()
  local t = { name = "spec", pair = pair, arms = { { policy = "linear", params = { K = 2 } } }, tokens = { 8 },
              prompts = { { set = "s", name = "a", text = " 1" }, { set = "s", name = "b", text = " 10" } },
              generate = { ignore_eos = true }, out = os.tmpname() }
  os.remove(t.out)
  t.settings = bound.settings(t)
  local head = assert(experiment.run(t)).head
  local costs, times = dt.measure_costs(pair)
  for _ = 1, 2 do
    local runs, plain = assert(bound.run(t, head, costs, times)).runs, {}
    lu.assertEquals(#runs, 2 * 2 + 2 * 2)
    for _, run in ipairs(runs) do
      if run.arm == "ar" then plain[run.prompt] = run end
      lu.assertEquals(run.bound, (run.arm == bound.CHAIN or run.arm == bound.TREE) or nil)
      if run.arm == bound.CHAIN and run.prompt == "a" then
        lu.assertAlmostEquals(run.stats.tokens_per_iteration, 8, 1e-9)
        lu.assertTrue(run.stats.tokens_per_second > plain.a.stats.tokens_per_second)
        lu.assertTrue(run.stats.tokens_per_second <= plain.a.stats.tokens_per_second * 8 / 6.25 * (1 + 1e-9))
      end
    end
  end
  os.remove(t.out)
end

os.exit(lu.LuaUnit.run())
