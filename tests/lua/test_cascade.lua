-- Two draft models: {model =} of tree:draft_step, tree:draft_chain and batch:draft_step, in the box, and the policy
-- cascade, on scripted pairs and on the bundled one.
local lu = require "luaunit"
local dt = require "dt"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")

local PRELUDE = [[
local policy = require "dt.policy"
local P = policy.define { name = "test" %s }
local function eq(a, b, what)
  if a ~= b then error((what or "") .. " expected " .. tostring(b) .. ", got " .. tostring(a), 2) end
end
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
local function chain(tree, tokens, first, last)
  eq(last - first + 1, #tokens, "length:")
  for i, token in ipairs(tokens) do eq(tree:token(first + i - 1), token) end
end
]]

-- After any text the first draft says 1, the second 2, the target 1.
local MODELS = { vocab = 9, context = 60, target = { [""] = { [1] = 0.9 } }, draft = { [""] = { [1] = 0.5 } },
                 draft2 = { [""] = { [2] = 0.75, [3] = 0.125 } } }

local function run(body, how, models, defined)
  local pair <close> = assert(dt.fake(models or MODELS))
  local request = { policy = "test.lua", tokens = 20, source = PRELUDE:format(defined or "") .. body .. "\nreturn P" }
  for key, value in pairs(how or { prompt = " 7 8" }) do request[key] = value end
  local result, err
  if request.prompts then
    result, err = pair:generate_batch(request)
    local _, failure = next(err)
    if failure then lu.fail(tostring(failure)) end
  else
    result, err = pair:generate(request)
    if not result then lu.fail(err.message) end
  end
  return result
end

-- The body of the first draft of a text.
local function draft(body, how, models)
  return run("function P:draft(tree) if self.drafted then return end self.drafted = true " .. body .. "\nend",
             how, models)
end

TestModels = {}

function TestModels.test_a_node_has_the_candidates_of_the_model_asked_last()
  draft [[
    local SECOND = { model = 2 }
    eq(tree.seq.models, 2) eq(tree.seq.drafts, true)
    tree:draft_step(0, SECOND)
    eq(tree:candidate(0, 1), 2) eq(tree:candidate(0, 2), 3)
    tree:draft_step({ 0 }, nil, { model = 1 })
    eq(tree:candidate(0, 1), 1) eq(tree:confidence(0), 0.5)
    tree.seq:draft_step({ 0, 0 }, 1, SECOND)
    eq(tree:candidate(0, 1), 2) eq(tree:confidence(0), 0.75)
    chain(tree, { 2 }, tree:branch(0, 1))
    tree:draft_step({ 1 }, {}) -- the first
    eq(tree:candidate(1, 1), 1) eq(tree:candidate(0, 1), 2)
    chain(tree, { 2, 2, 2 }, tree:draft_chain(1, 3, SECOND))
    eq(tree:candidate(1, 1), 2)
    chain(tree, { 1, 1 }, tree:draft_chain(4, 2, 0.25, { model = 1 }))
    chain(tree, { 2 }, tree:draft_chain(6, 2, 0.875, SECOND)) -- it is less sure than that
    chain(tree, { 3 }, tree:draft_chain(0, 1, SECOND))        -- its likeliest that is no child yet ]]
end

function TestModels.test_mistakes_raise_and_name_the_argument()
  draft [[
    local s, c, seq = tree.draft_step, tree.draft_chain, tree.seq
    for _, model in ipairs { 0, -1, 3, math.maxinteger, math.mininteger } do
      raises("seq:unread: model = " .. model .. " is out of range: 1 to 2", seq.unread, seq, model)
      raises("tree:draft_step: model = " .. model .. " is out of range: 1 to 2", s, tree, 0, { model = model })
      raises("tree:draft_chain: model = " .. model .. " is out of range: 1 to 2", c, tree, 0, 1, { model = model })
    end
    raises("tree:draft_step: model must be an integer, not a fraction", s, tree, 0, { model = 1.5 })
    raises("tree:draft_step: model must be an integer, not string", s, tree, 0, { model = "2" })
    raises("tree:draft_step: unknown option 'modell' (known: model, width)", s, tree, 0, { modell = 2 })
    raises("tree:draft_step: width = -1 is negative", s, tree, 0, { width = -1 })
    raises("tree:draft_step: unknown option 'number' (known: model, width)", s, tree, 0, { 2 })
    raises("tree:draft_chain: unknown option 'least' (known: model, width)", c, tree, 0, 1, 0, { least = 2 })
    raises("tree:draft_chain: width is not an option of chains, which ask for their own length", c, tree, 0, 1,
           { width = 2 })
    raises("seq:draft_step: model = 3 is out of range: 1 to 2", seq.draft_step, seq, 0, { model = 3 })
    raises("seq:unread: model must be an integer, not a fraction", seq.unread, seq, 1.5)
    raises("tree:draft_chain: k must be an integer, not table", c, tree, 0, { model = 2 })
    eq(tree:drafted(0), false) ]]
end

function TestModels.test_each_reads_the_text_by_itself()
  draft([[
    local seq = tree.seq
    local n = seq:length() - 1
    eq(n, 4)
    eq(seq:unread(), n) eq(seq:unread(1), n) eq(seq:unread(2), n)
    tree:draft_step(0, { model = 2 })
    eq(seq:unread(1), n) eq(seq:unread(2), 0)
    tree:draft_step(0)
    eq(seq:unread(1), 0) ]], { prompt = " 4 5 6 7 8" })
end

function TestModels.test_a_pair_with_one_draft_has_no_second()
  local one = probe.with(MODELS, {})
  one.draft2 = nil
  draft([[
    local none = "model = 2: there is no second draft model: give one with --draft2"
    eq(tree.seq.models, 1) eq(tree.seq:unread(2), 0)
    raises("tree:draft_step: " .. none, tree.draft_step, tree, 0, { model = 2 })
    raises("tree:draft_chain: " .. none, tree.draft_chain, tree, 0, 1, { model = 2 })
    tree:draft_step(0, { model = 1 }) ]], nil, one)
  for _, uses in ipairs { "false", '"optional"' } do
    local models = uses == "false" and 0 or 2
    local body = ("eq(tree.seq.models, %d) eq(tree.seq:unread() > 0, %s)"):format(models, models > 0)
    run("function P:draft(tree) " .. body .. " end", nil, nil, ", uses = { draft = " .. uses .. " }")
  end
end

-- One object for all: its lists go to the model that it names, in one pass.
function TestModels.test_a_batch_names_its_model()
  local results = run([[
    function P:draft(batch)
      local roots = {}
      for i = 1, #batch do roots[i] = { 0 } end
      batch:draft_step(roots, { model = 2 })
      for i = 1, #batch do eq(batch[i]:candidate(0, 1), 2) end
      batch:draft_step(roots, 1, { model = 1 })
      for i = 1, #batch do eq(batch[i]:candidate(0, 1), 1) batch[i]:branch(0, 1) end
      raises("batch:draft_step: model = 3 is out of range: 1 to 2", batch.draft_step, batch, roots, { model = 3 })
    end ]], { prompts = { " 1", " 2", " 3" }, tokens = 6 }, nil, ', scope = "batch"')
  for _, result in ipairs(results) do
    lu.assertEquals(result.tokens, { 1, 1, 1, 1, 1, 1 })
    lu.assertTrue(result.stats.accepted > 0)
  end
end

-- Texts at once that ask different models: each gets its own, and the passes of those that ask the same one are shared.
function TestModels.test_several_texts_ask_different_models()
  local results = run([[
    function P:draft(tree)
      local model = tree.seq:token(1) % 2 + 1
      tree:draft_step(0, { model = model })
      eq(tree:candidate(0, 1), model)
      tree:branch(0, 1)
    end ]], { prompts = { " 4", " 5", " 6", " 7" }, tokens = 12 })
  for i, result in ipairs(results) do
    lu.assertEquals(result.stats.accepted > 0, i % 2 == 1) -- the first draft is right, the second wrong
  end
end

-- ---- the policy -----------------------------------------------------------------------------------------------------

TestCascade = {}

-- Each draft is a chain: after token t comes first[t], second[t] (0.75 sure).
local function fake(first, second, target)
  local function chains(next)
    local rules = {}
    for token, after in pairs(next) do rules[tostring(token)] = { [after] = 0.75 } end
    return rules
  end
  return probe.fake(nil, target, { draft = chains(first), draft2 = second and chains(second) })
end

local function both(pair, params)
  local trace = probe.trace(pair, "cascade", params)[1].nodes
  local kept = {}
  for _, node in ipairs(trace) do
    if node.kept and node.id > 0 then kept[#kept + 1] = node.token end
  end
  return probe.tree(pair, "cascade", params), table.concat(kept, " ")
end

local ROUND = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } -- 1, 2, 3, ..
local FIVES = { 2, 3, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 }       -- 3 is followed by 5, all later ones by 9

function TestCascade.test_the_first_draft_goes_along_and_adds_a_token()
  local tree, kept = both(fake(ROUND, ROUND, ROUND), { K = 3, reviewed = 4, tail = 2 })
  lu.assertEquals(tree, "0>2 1>3 2>4 3>5 4>6 5>7")
  lu.assertEquals(kept, "2 3 4 5 6 7")
end

function TestCascade.test_it_corrects_the_chain_where_it_would_write_otherwise()
  local pair = fake(ROUND, FIVES, ROUND)
  local tree, kept = both(pair, { K = 3, reviewed = 6, tail = 1 })
  -- The second: 2 3 5; the first: 4 instead of 5. 9 9 is refused, and another 9, 7 is the first's alone; last a 9.
  lu.assertEquals(tree, "0>2 1>3 2>5 2>4 4>9 5>9 4>5 7>9 7>6 9>7 10>9")
  lu.assertEquals(kept, "2 3 4 5 6 7 9")
end

function TestCascade.test_nothing_of_the_second_is_kept_where_it_begins_wrong()
  local wrong = {}
  for t = 1, 14 do wrong[t] = 20 end
  lu.assertEquals({ both(fake(ROUND, wrong, ROUND), { K = 2, reviewed = 2, tail = 0 }) }, { "0>20 0>2 2>3", "2 3" })
end

function TestCascade.test_bounds()
  local pair = fake(ROUND, FIVES, ROUND)
  lu.assertEquals({ both(pair, { reviewed = 0, tail = 3 }) }, { "0>2 1>3 2>5", "2 3 5" }) -- the second alone
  lu.assertEquals({ both(pair, { reviewed = 1, tail = 0 }) }, { "0>2", "2" })             -- the first alone
  lu.assertEquals({ both(pair, { reviewed = 1, tail = 1 }) }, { "0>2 1>3", "2 3" })
  lu.assertEquals({ both(pair, { reviewed = 0, tail = 0 }) }, { "", "" })
  lu.assertEquals(select(2, both(pair, { K = 1, reviewed = 5, tail = 0 })), "2 3 4 5 6")
  lu.assertEquals(select(2, both(pair, { K = 64, reviewed = 5, tail = 0 })), "2 3 4 5 6")
  local deep = probe.trace(pair, "cascade", { K = 64, reviewed = 64, tail = 64 })[1].nodes
  lu.assertTrue(#deep <= 257)
end

-- Where room is short, and where one draft's context ends before the other's text does.
function TestCascade.test_a_short_text_ends_the_chain()
  local function tokens(n, params)
    local pair = fake(ROUND, FIVES, ROUND)
    local first = probe.trace(pair, "cascade", params, 1, { tokens = n })[1].nodes
    local depth, deepest = { [0] = 0 }, 0
    for v = 1, #first - 1 do
      depth[v] = depth[first[v + 1].parent] + 1
      deepest = first[v + 1].kept and math.max(deepest, depth[v]) or deepest
    end
    return deepest
  end
  for n = 2, 9 do lu.assertEquals(tokens(n, { K = 2, reviewed = 5, tail = 2 }), math.min(n - 1, 7)) end
end

function TestCascade.test_one_draft_writes_all_of_the_chain()
  lu.assertEquals({ both(fake(ROUND, nil, ROUND), { reviewed = 3, tail = 2 }) },
    { "0>2 1>3 2>4 3>5 4>6", "2 3 4 5 6" })
end

-- What is reviewed is what the first draft would write alone: without a tail the trees that are verified are those of
-- `linear`, whatever the second draft is.
function TestCascade.test_without_a_tail_it_verifies_the_first_drafts_chains()
  local plain <close> = assert(dt.load { threads = 1 })
  local request = { prompt = "It was a dark night, and", tokens = 60, ignore_eos = true }
  for _, second in ipairs { "exit:1", "exit:4", "models/mini-head" } do
    local path = second:find "exit" and second or probe.ROOT .. second
    local pair <close> = assert(dt.load { target = probe.ROOT .. "models/mini-target",
                                          draft = probe.ROOT .. "models/mini-draft", draft2 = path, threads = 1 })
    lu.assertEquals(pair.draft2, path)
    for _, n in ipairs { 1, 4, 7 } do
      local linear = assert(plain:generate(probe.with(request, { policy = "linear", params = { K = n } })))
      for K = 1, 4 do
        local result = assert(pair:generate(probe.with(request,
          { policy = "cascade", params = { K = K, reviewed = n, tail = 0 } })))
        lu.assertEquals(result.tokens, linear.tokens)
        for _, count in ipairs { "iterations", "drafted", "accepted" } do
          lu.assertEquals(result.stats[count], linear.stats[count])
        end
      end
    end
  end
end

-- Node for node against a reference in Python: tests/golden/make_cascades.py.
function TestCascade.test_its_trees_are_those_of_the_golden_file()
  local file <close> = assert(io.open(probe.ROOT .. "tests/golden/cascades.json", "rb"))
  local golden, pairs_of = assert(dt.json.decode(file:read "a")), {}
  for name, pair in pairs(golden.pairs) do
    local models = { vocab = golden.vocab, context = 2000 }
    for model, of in pairs(pair) do
      models[model] = {}
      for context, named in pairs(of) do
        models[model][context] = {}
        for token, p in pairs(named) do models[model][context][tonumber(token)] = p end
      end
    end
    pairs_of[name] = assert(dt.fake(models))
  end
  for _, case in ipairs(golden.cases) do
    local list = probe.trace(pairs_of[case.pair], "cascade", case.params, #case.iterations,
      { prompt = " " .. table.concat(case.prompt, " "), tokens = 300 })
    for i, expected in ipairs(case.iterations) do
      local shape, kept, nodes = {}, {}, list[i].nodes
      for v = 1, #nodes - 1 do
        shape[v] = nodes[v + 1].parent .. ">" .. nodes[v + 1].token
        if nodes[v + 1].kept then kept[#kept + 1] = v end
      end
      lu.assertEquals({ table.concat(shape, " "), table.concat(kept, " ") }, { expected.tree, expected.kept })
    end
  end
end

-- ---- rate -----------------------------------------------------------------------------------------------------------

TestRateOfTwo = {}

local WHICH = "self.guesses.passes == 0 and 0 or self.guesses.chosen.model"

-- How many iterations asked each model, 0: none; the first `learns` are left out. The text is 1, 2, .. and never
-- repeats; right[m](t) says whether draft m is right after token t, and a pass of it takes ms[m] ms if the target's
-- takes 10.
local function asked(right, ms, learns, iterations)
  local rules, target = { {}, {} }, {}
  for t = 1, 197 do
    target[t] = t + 1
    for m = 1, 2 do rules[m][tostring(t)] = { [right[m](t) and t + 1 or t + 2] = 0.75 } end
  end
  local costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 10.0, 10.8 } } }
  for m, name in ipairs { "draft", "draft2" } do costs[name] = { { ms[m], 1.1 * ms[m] } } end
  local pair = probe.fake(nil, target, { vocab = 200, draft = rules[1], draft2 = rules[2], costs = costs })
  local count = { [0] = 0, 0, 0 }
  for i, model in ipairs(probe.states(WHICH, pair, "rate", nil, iterations)) do
    if i > learns then count[tonumber(model)] = count[tonumber(model)] + 1 end
  end
  return count
end

local function often(t) return t % 3 > 0 end -- else a text of 200 tokens would have few iterations
local function never() return false end

function TestRateOfTwo.test_asks_the_cheaper_one_where_both_are_right()
  for cheap = 1, 2 do
    local ms = { 1.0, 1.0 }
    ms[cheap] = 0.2
    local count = asked({ often, often }, ms, 4, 30)
    lu.assertTrue(count[cheap] >= 18, ("%d of 26"):format(count[cheap]))
    lu.assertEquals(count[0], 0)
  end
end

function TestRateOfTwo.test_asks_the_one_that_is_right_though_it_is_more_expensive()
  for good = 1, 2 do
    local right, ms = { never, never }, { 0.2, 0.2 }
    right[good], ms[good] = often, 1.0
    local count = asked(right, ms, 25, 45)
    lu.assertTrue(count[good] >= 15, ("%d of 20"):format(count[good]))
  end
end

function TestRateOfTwo.test_asks_the_other_now_and_then_to_see()
  for good = 1, 2 do
    local right, ms = { never, never }, { 1.0, 1.0 }
    right[good], ms[good] = often, 0.5
    local count = asked(right, ms, 5, 45)
    lu.assertTrue(count[good] >= 30 and count[3 - good] >= 2, ("%d and %d"):format(count[good], count[3 - good]))
  end
end

-- A table that knows of one draft only: the other is not asked, and nothing fails.
function TestRateOfTwo.test_asks_none_that_has_no_cost()
  local first, target = probe.circle()
  local costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 10.0, 10.8 } }, draft = { { 0.5, 0.6 } } }
  local pair = probe.fake(first, target, { draft2 = {}, costs = costs })
  lu.assertStrContains(probe.tree(pair, "rate", nil, 3), "0>2 1>3")
end

os.exit(lu.LuaUnit.run())
