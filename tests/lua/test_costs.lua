-- The costs of passes, for drivers and policies.
local lu = require "luaunit"
local dt = require "dt"

local TABLE = { contexts = { 128 }, rows = { 1, 9 }, target = { { 1.0, 3.0 } }, draft = { { 0.125, 1.125 } } }

local function fake(options)
  local fields = { vocab = 9, context = 60, costs = TABLE }
  for name, value in pairs(options or {}) do fields[name] = value end
  return assert(dt.fake(fields))
end

-- What a policy's expression gives in draft, as text.
local function in_policy(pair, expression, uses)
  local result, err = pair:generate { prompt = " 7", tokens = 9, source = ([[
    local P = require "dt.policy".define { name = "p", uses = { %s } }
    function P:draft(tree) error("<" .. tostring(%s) .. ">", 0) end
    return P ]]):format(uses or "costs = true", expression) }
  lu.assertNil(result)
  return err.message
end

TestCosts = {}

function TestCosts.test_a_policy_that_uses_costs_gets_them_without_asking()
  lu.assertStrContains(in_policy(fake(), "self.costs:target(5, tree.seq:length())"), "<2.0>")
  lu.assertStrContains(in_policy(fake(), "self.costs:draft(9, 1, 1)"), "<1.125>")
  lu.assertStrContains(in_policy(fake(), "self.costs", "costs = false"), "<nil>")
end

-- A table with a first pass of its own, for one sequence and for two, and with what sampling takes.
local SAMPLED = { contexts = { 128, 256 }, rows = { 1, 9 }, target = { { 1.0, 3.0 }, { 1.0, 3.0 } },
                draft = { { 0.125, 1.125 }, { 0.25, 1.25 } }, first = { 0.25, 0.5 },
                target_sample = 0.5, draft_sample = 0.0625 }

function TestCosts.test_the_first_draft_pass_of_an_iteration_has_a_time_of_its_own()
  lu.assertStrContains(in_policy(fake(), "self.costs:first(1)"), "<0.125>") -- without: as the others
  local pair = fake { costs = SAMPLED }
  lu.assertStrContains(in_policy(pair, "self.costs:first(128)"), "<0.25>")
  lu.assertStrContains(in_policy(pair, "self.costs:first(129)"), "<0.5>")
  lu.assertStrContains(in_policy(pair, "self.costs:first(128, 2)"), "<0.375>") -- two rows
  local alone = fake { draft = false, costs = { contexts = { 128 }, rows = { 1 }, target = { { 1.0 } } } }
  lu.assertStrContains(in_policy(alone, "self.costs:first(1)", "costs = true, draft = false"),
                       "costs:first: there is no draft model")
end

-- What a policy keeps, a later text of the same pair recalls; another policy does not, nor another way of sampling.
function TestCosts.test_a_policy_recalls_what_it_kept_in_an_earlier_text()
  local function source_of(more)
    return [[
      local P = require "dt.policy".define { name = "p", uses = { costs = true } }
      function P:init()
        local n = self.costs:recall "n"
        self.costs:keep("n", { (n or { 0 })[1] + 1, 0.5 })
        self.found = n and table.concat(n, " ") or "nothing"
      end
      function P:draft(tree) error("<" .. self.found .. ">", 0) end
      return P]] .. more
  end
  local pair = fake { costs = "learn" }
  local function found(options)
    options.prompt, options.tokens = " 7", 3
    options.source = source_of(options.more or "")
    options.more = nil
    return select(2, pair:generate(options)).message:match "<(.*)>"
  end
  for i, step in ipairs {
    { {}, "nothing" }, { {}, "1.0 0.5" }, { { more = " " }, "nothing" }, { {}, "2.0 0.5" },
    { { temp = 1 }, "nothing" }, { { temp = 1 }, "1.0 0.5" }, { {}, "3.0 0.5" },
    { { costs = "table" }, "nothing" }, { { costs = "table" }, "nothing" }, { {}, "4.0 0.5" },
  } do lu.assertEquals(found(step[1]), step[2], i) end
end

function TestCosts.test_what_is_kept_is_a_list_of_finite_numbers()
  local pair = fake { costs = "learn" }
  for expression, message in pairs {
    ['keep("n", {1, 2})'] = "<true>", ['keep("n", {})'] = "<true>", ['recall "m"'] = "<nil>",
    ['keep("n", {1, 0 / 0})'] = "costs:keep: item 2 is not a finite number",
    ['keep("n", {"1"})'] = "costs:keep: item 1 is not a finite number",
    ['keep("n", 1)'] = "costs:keep: the second argument is not a plain list",
    ['keep("", {1})'] = "costs:keep: a name is a string of 1 to 32 bytes without NUL",
    ['keep(("n"):rep(33), {1})'] = "costs:keep: a name is a string of 1 to 32 bytes without NUL",
    ['keep("n\\0", {1})'] = "costs:keep: a name is a string of 1 to 32 bytes without NUL",
    ['keep("n", (function() local t = {} for i = 1, 257 do t[i] = i end return t end)())'] =
      "costs:keep: the list has more than 256 numbers",
    ["recall(7)"] = "costs:recall: a name is a string of 1 to 32 bytes without NUL",
  } do lu.assertStrContains(in_policy(pair, "self.costs:" .. expression), message) end
end

function TestCosts.test_a_pass_of_the_target_costs_more_the_more_experts_it_reads()
  local costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 1.0, 3.0 } }, draft = { { 0.125, 1.125 } },
                  experts = { 8, 40 }, expert = { 0.125, 0.125 } }
  local pair = fake { costs = costs }
  for expression, ms in pairs {
    ["5, 1"] = "2.0", ["5, 1, nil, 0"] = "2.0", ["5, 1, 1, 24"] = "2.0", -- as usual
    ["5, 1, nil, 32"] = "3.0", ["5, 1, nil, 25.5"] = "2.1875", ["1, 1, 5, 32"] = "3.0", ["1, 1, nil, 1e-9"] = "1e-06",
    ["9, 1, nil, 1e9"] = "124999998.0",
  } do lu.assertStrContains(in_policy(pair, ("self.costs:target(%s)"):format(expression)), "<" .. ms .. ">") end
  lu.assertStrContains(in_policy(fake(), "self.costs:target(5, 1, nil, 1000)"), "<2.0>") -- a table without experts
  lu.assertErrorMsgContains("costs: experts needs one number for each row count", fake, { costs = {
    contexts = { 128 }, rows = { 1 }, target = { { 1.0 } }, experts = { 0.5 }, expert = { 0 } } })
end

function TestCosts.test_rows_that_are_sampled_take_longer()
  local pair = fake { costs = SAMPLED }
  local function cost(expression, options)
    local asked = { prompt = " 7", tokens = 9, source = ([[
      local P = require "dt.policy".define { name = "p", uses = { costs = true } }
      function P:draft(tree) error("<" .. tostring(%s) .. ">", 0) end
      return P ]]):format(expression) }
    for name, value in pairs(options) do asked[name] = value end
    return select(2, pair:generate(asked)).message:match "<(.*)>"
  end
  for expression, times in pairs {
    ["self.costs:target(5, 1)"] = { "2.0", "4.5", "4.5" },
    ["self.costs:target(1, 1, 2)"] = { "1.25", "2.25", "2.25" },
    ["self.costs:draft(5, 1)"] = { "0.625", "0.9375", "0.625" },
    ["self.costs:first(1)"] = { "0.25", "0.3125", "0.25" },
  } do
    lu.assertEquals(cost(expression, {}), times[1])
    lu.assertEquals(cost(expression, { temp = 1 }), times[2])
    lu.assertEquals(cost(expression, { temp = 1, coupled = false }), times[3])
  end
end

function TestCosts.test_a_policy_is_told_how_many_sequences_run_at_once()
  lu.assertStrContains(in_policy(fake(), "self.costs:sequences()"), "<1>")
  local source, seen = [[
    local P = require "dt.policy".define { name = "p", uses = { costs = true } }
    function P:draft() error("<" .. self.costs:sequences() .. ">", 0) end
    return P ]], {}
  fake():generate_batch { prompts = { " 1", " 2", " 3" }, slots = 2, tokens = 2, source = source,
                          on_done = function(i, _, failure) seen[i] = failure.message:match "<.>" end }
  lu.assertEquals(seen, { "<2>", "<2>", "<2>" })
end

function TestCosts.test_a_scripted_pair_without_a_table_is_measured()
  local ms = tonumber(in_policy(fake { costs = false }, "self.costs:target(3, 1)"):match "<(.*)>")
  lu.assertTrue(ms > 0 and ms < 1000)
end

function TestCosts.test_what_is_learned_can_change_and_a_table_cannot()
  lu.assertStrContains(in_policy(fake(), "self.costs:revision()"), "<0>")
  lu.assertStrContains(in_policy(fake(), "self.costs.revision({})"), "costs expected, got table")
  local seen = tonumber(in_policy(fake { costs = "learn" }, "self.costs:revision()"):match "<(%d+)>")
  lu.assertTrue(seen >= 1) -- the first look corrected the estimate
end

function TestCosts.test_a_result_says_what_its_policy_counted_with()
  local function costs(pair, kind, policy)
    return assert(pair:generate { policy = policy or "cast", prompt = " 7", tokens = 3, costs = kind }).costs
  end
  lu.assertEquals(costs(fake { costs = false }), "learn")
  lu.assertEquals(costs(fake { costs = "learn" }), "learn")
  lu.assertEquals(costs(fake { costs = "table" }), "table")
  lu.assertEquals(costs(fake()), "table")
  lu.assertEquals(costs(fake(), "learn"), "learn")
  lu.assertEquals(costs(fake { costs = "learn" }, "table"), "table")
  lu.assertNil(costs(fake(), nil, "ar"))
  lu.assertErrorMsgContains("generate: costs: 'measured': expected learn or table", costs, fake(), "measured")
end

function TestCosts.test_measure_costs_gives_the_object_and_its_table()
  local costs, t = assert(dt.measure_costs(fake()))
  lu.assertEquals({ costs:target(1, 10), costs:target(2, 10), costs:draft(2, 10) }, { 1.0, 1.25, 0.25 })
  lu.assertEquals({ t.contexts, t.rows, t.target, t.draft }, { { 128 }, { 1, 9 }, TABLE.target, TABLE.draft })
  lu.assertErrorMsgContains(
    "dt.measure_costs: unknown key 'again' (known: batch, fresh)", dt.measure_costs, fake(), { again = true })
end

function TestCosts.test_without_a_draft_model_there_are_no_costs_of_drafting()
  local pair = fake { draft = false, costs = { contexts = { 128 }, rows = { 1 }, target = { { 1.0 } } } }
  lu.assertStrContains(in_policy(pair, "self.costs:target(1, 1)", "costs = true, draft = false"), "<1.0>")
  lu.assertStrContains(in_policy(pair, "self.costs:draft(1, 1)", "costs = true, draft = false"),
                       "costs:draft: there is no draft model")
end

function TestCosts.test_a_draft_model_reads_a_text_in_a_time_of_its_own()
  lu.assertStrContains(in_policy(fake(), "self.costs:read(9) - self.costs:draft(9, 9)"), "<0.0>") -- not measured
  local costs = { read = 0.25 }
  for name, value in pairs(TABLE) do costs[name] = value end
  lu.assertStrContains(in_policy(fake { costs = costs }, "self.costs:read(100)"), "<25.0>")
  costs.read = -1.0
  lu.assertErrorMsgContains("costs: read is not a time from 0 to 1e9 ms", fake, { costs = costs })
end

function TestCosts.test_a_cache_miss_takes_longer_the_more_target_passes_are_between()
  local costs = { cache_miss = { 0.25, 0.5, 2.0 } }
  for name, value in pairs(TABLE) do costs[name] = value end
  local pair = fake { costs = costs }
  for passes, ms in pairs { [0] = "<0.25>", "<0.5>", "<2.0>", [1 << 30] = "<2.0>" } do
    lu.assertStrContains(in_policy(pair, ("self.costs:cache_miss(%d)"):format(passes)), ms)
  end
  lu.assertStrContains(in_policy(fake(), "self.costs:cache_miss(0)"), "<0.00075>") -- a table that does not tell
  costs.cache_miss = { 1.0, 2.0 }
  lu.assertErrorMsgContains("costs: cache_miss needs three times", fake, { costs = costs })
end

function TestCosts.test_bad_arguments_name_function_and_argument()
  for expression, message in pairs {
    ["self.costs:target(0, 1)"] = "costs:target: rows must be an integer of at least 1",
    ["self.costs:target(1.5, 1)"] = "costs:target: rows must be an integer of at least 1",
    ["self.costs:first()"] = "costs:first: context must be an integer of at least 0",
    ["self.costs:first(1, 0)"] = "costs:first: batch must be an integer of at least 1",
    ["self.costs.first({}, 1)"] = "costs expected, got table",
    ["self.costs:target(1, 1, nil, -1)"] = "costs:target: experts must be a number from 0 to 1e9",
    ["self.costs:target(1, 1, nil, 1e9 + 1)"] = "costs:target: experts must be a number from 0 to 1e9",
    ["self.costs:target(1, 1, 1, 0/0)"] = "costs:target: experts must be a number from 0 to 1e9",
    ["self.costs:target(1, 1, 1, 'a')"] = "costs:target: experts must be a number from 0 to 1e9",
    ["self.costs:draft(1)"] = "costs:draft: context must be an integer of at least 0",
    ["self.costs:draft(1, 1, 0)"] = "costs:draft: batch must be an integer of at least 1",
    ["self.costs.target({}, 1, 1)"] = "costs expected, got table",
    ["self.costs:read()"] = "costs:read: n must be an integer of at least 1",
    ["self.costs.read({}, 1)"] = "costs expected, got table",
    ["self.costs:cache_miss()"] = "costs:cache_miss: passes must be an integer of at least 0",
    ["self.costs:cache_miss(-1)"] = "costs:cache_miss: passes must be an integer of at least 0",
    ["self.costs.cache_miss({}, 1)"] = "costs expected, got table",
    ["self.costs.sequences({})"] = "costs expected, got table",
    ["getmetatable(self.costs).__index.x"] = "attempt to index a boolean value",
  } do
    lu.assertStrContains(in_policy(fake(), expression), message)
  end
end

function TestCosts.test_a_table_that_is_none_raises()
  lu.assertErrorMsgContains("costs: rows must begin with 1", dt.fake,
                            { vocab = 9, costs = { contexts = { 128 }, rows = { 2 }, target = { { 1.0 } } } })
end

function TestCosts.test_where_costs_cannot_be_measured_the_policy_is_not_run()
  local pair = fake { costs = false, target = { [""] = { [1] = 0 / 0 } } }
  local result, err = pair:generate { policy = "cast", prompt = " 7", tokens = 9 }
  lu.assertNil(result)
  lu.assertEquals(err.kind, "device")
  lu.assertStrContains(err.message, "returned NaN")
  local costs, failure = dt.measure_costs(pair)
  lu.assertNil(costs)
  lu.assertEquals(failure.kind, "device")
end

os.exit(lu.LuaUnit.run())
