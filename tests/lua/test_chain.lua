-- tree:draft_chain, in the box, on scripted pairs and on the bundled one.
local lu = require "luaunit"
local dt = require "dt"

local PRELUDE = [[
local policy = require "dt.policy"
local P = policy.define { name = "test" }
local function eq(a, b, what)
  if a ~= b then error((what or "") .. " expected " .. tostring(b) .. ", got " .. tostring(a), 2) end
end
local function near(a, b) if math.abs(a - b) > 1e-6 then error("expected " .. b .. ", got " .. a, 2) end end
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
-- A chain's nodes are new, each the child of the one before.
local function chain(tree, u, tokens, first, last)
  eq(last - first + 1, #tokens, "length:")
  for i, token in ipairs(tokens) do
    eq(tree:token(first + i - 1), token) eq(tree:parent(first + i - 1), i == 1 and u or first + i - 2)
  end
end
]]

-- The draft model says 1: 1/2, 2: 1/4 after any text, and after 1 surely 2, after 2 surely 3; the target says 1.
local MODELS = { vocab = 9, context = 60, target = { [""] = { [1] = 0.9 } },
                 draft = { [""] = { [1] = 0.5, [2] = 0.25 }, ["1"] = { [2] = 1.0 }, ["2"] = { [3] = 1.0 } } }

-- Runs `body` as the first draft of a text of n tokens; the policy's own assertions fail the test.
local function draft(body, tokens, how, more)
  local models = {}
  for key, value in pairs(MODELS) do models[key] = value end
  for key, value in pairs(more or {}) do models[key] = value end
  local pair <close> = assert(dt.fake(models))
  local request = { policy = "test.lua", prompt = " 7 8", tokens = tokens or 20, source = PRELUDE .. [[
    function P:draft(tree)
      if self.drafted then return end
      self.drafted = true
      ]] .. body .. "\nend return P" }
  for key, value in pairs(how or {}) do request[key] = value end
  local result, err = pair:generate(request)
  if not result then lu.fail(err.message) end
  return result
end

TestChain = {}

function TestChain.test_each_node_is_the_likeliest_after_the_one_before()
  draft [[
    chain(tree, 0, { 1, 2, 3, 1 }, tree:draft_chain(0, 4))
    near(tree:p(1), 0.5) near(tree:p(3), 0.5) near(tree:p(4), 0.25)
    near(tree:confidence(1), 1) eq(tree:drafted(4), false)
    chain(tree, 2, {}, tree:draft_chain(2, 0)) eq(tree:size(), 4)
    chain(tree, 4, { 2 }, tree:draft_chain(4, 1)) ]]
end

function TestChain.test_it_begins_with_the_likeliest_that_is_no_child_yet()
  draft [[
    tree:add(0, 1)
    chain(tree, 0, { 2, 3 }, tree:draft_chain(0, 2))
    chain(tree, 1, { 2 }, tree:draft_chain(1, 1)) ]]
end

function TestChain.test_it_ends_with_one_less_probable_than_least()
  draft [[
    chain(tree, 0, { 1 }, tree:draft_chain(0, 9, 0.75))
    chain(tree, 1, { 2, 3, 1 }, tree:draft_chain(1, 9, 0.75)) ]]
  draft "chain(tree, 0, { 1, 2, 3, 1, 2, 3, 1, 2, 3 }, tree:draft_chain(0, 9, 0.5))" -- 0.5 is not less
end

-- The bonus token is one of those wanted, so of n tokens a tree guesses n - 1.
function TestChain.test_it_is_as_deep_as_the_text_wanted_and_no_deeper()
  for _, k in ipairs { 4, 5, 6, math.maxinteger } do
    local deepest = math.min(k, 5)
    draft(("local first, last = tree:draft_chain(0, %d) eq(first, 1) eq(last, %d) eq(tree:depth_room(), %d)"
      .. " eq(tree:drafted(%d), true) eq(tree:drafted(%d), false)"):format(k, deepest, 5 - deepest, deepest - 1,
      deepest), 6)
  end
  draft("chain(tree, 0, {}, tree:draft_chain(0, 1)) eq(tree:drafted(0), false)", 1)
end

function TestChain.test_it_ends_with_the_trees_room()
  draft [[
    tree:limit(3)
    chain(tree, 0, { 1, 2, 3 }, tree:draft_chain(0, 9))
    eq(tree:drafted(3), false) -- no pass for nothing
    chain(tree, 3, {}, tree:draft_chain(3, 1)) eq(tree:drafted(3), false) ]]
  draft("chain(tree, 0, { 1, 2, 3 }, tree:draft_chain(0, 9)) chain(tree, 3, {}, tree:draft_chain(3, 1))", 20, nil,
        { draft_context = 4 }) -- two tokens of text and two of the chain are drafted from
end

-- A token's text is a space and its number.
function TestChain.test_a_grammar_forbids_guesses_and_may_end_it()
  local forced = { grammar = 'root ::= " 4" " 5" " 6"' }
  local result = draft("chain(tree, 0, { 4, 5, 6, 8 }, tree:draft_chain(0, 9))", 20, forced, { eos = 8 })
  lu.assertEquals(result.tokens, { 4, 5, 6, 8 })
  lu.assertEquals(result.stats.accepted, 3)
  draft("chain(tree, tree:add(0, 3), {}, tree:draft_chain(1, 2))", 20, forced, { eos = 8 }) -- after a forbidden one
end

function TestChain.test_mistakes_raise_and_name_the_argument()
  draft [[
    local c = tree.draft_chain
    raises("tree:draft_chain: not called as a method of a tree", c, tree.seq, 0, 1)
    raises("tree:draft_chain: u: there is no node 1 (the tree has 0..0)", c, tree, 1, 1)
    raises("tree:draft_chain: u must be an integer, not table", c, tree, { 0 }, 1)
    raises("tree:draft_chain: k must be an integer, not nil", c, tree, 0)
    raises("tree:draft_chain: k must be an integer, not a fraction", c, tree, 0, 1.5)
    raises("tree:draft_chain: k = -1 is negative", c, tree, 0, -1)
    raises("tree:draft_chain: least must be a number, not string", c, tree, 0, 1, "0")
    eq(tree:size(), 0) eq(tree:drafted(0), false)
    tree:add(0, 1)
    tree:keep(1)
    raises("tree:draft_chain: draft_step: keep has settled the tree; verify_tree comes next", c, tree, 0, 1) ]]
  local pair <close> = assert(dt.fake(MODELS))
  local with = PRELUDE .. [[
    function P:init(seq)
      raises("tree:draft_chain: nothing can be drafted in init", seq.tree.draft_chain, seq.tree, 0, 1)
    end
    function P:observe(tree)
      raises("tree:draft_chain: the iteration is committed; the next draft starts an empty tree", tree.draft_chain,
             tree, 0, 1)
    end
    return P ]]
  local without = PRELUDE:gsub('"test"', '%0, uses = { draft = false }') .. [[
    function P:draft(tree)
      raises("tree:draft_chain: this policy declared uses = {draft = false}, or there is no draft model",
             tree.draft_chain, tree, 0, 0)
    end
    return P ]]
  for _, source in ipairs { with, without } do
    local result, err = pair:generate { policy = "test.lua", source = source, prompt = " 7", tokens = 2 }
    if not result then lu.fail(err.message) end
  end
end

-- ---- compared with the loop that it replaces ------------------------------------------------------------------------

local LOOP = [[
  local node, least = tree.root, %s
  for _ = 1, math.min(%d, tree:depth_room()) do
    tree:draft_step(node)
    local first, last = tree:branch(node, 1)
    if last < first then return end
    if tree:confidence(node) < least then return end
    node = first
  end ]]
local CALL = "local least, k = %s, %d tree:draft_chain(tree.root, k, least)"
local SOURCE = [[
  local policy = require "dt.policy"
  local P = policy.define { name = "mine", uses = { calibrate = true } }
  function P:draft(tree) %s end
  return P ]]

-- The iterations of a trace, without their times.
local function iterations(path)
  local lines = {}
  for line in io.lines(path) do
    if line:find '^{"iteration"' then lines[#lines + 1] = line:gsub(',"ms":%b{}', "") end
  end
  os.remove(path)
  return lines
end

local function request(body, least, k)
  return { policy = "mine.lua", source = SOURCE:format(body:format(least, k)), tokens = 60, ignore_eos = true }
end

function TestChain.test_its_trace_is_that_of_draft_steps_one_by_one()
  local pair <close> = assert(dt.load { threads = 1 })
  for _, case in ipairs { { 0, 1 }, { 0, 5 }, { 0.4, 8 }, { 0, 256 } } do
    for _, temp in ipairs { 0, 0.8 } do
      local traces = {}
      for i, body in ipairs { LOOP, CALL } do
        local how = request(body, table.unpack(case))
        how.prompt, how.temp, how.seed, how.trace = "It was a dark night, and", temp, 3, os.tmpname()
        assert(pair:generate(how))
        traces[i] = iterations(how.trace)
      end
      lu.assertTrue(#traces[1] > 5)
      lu.assertEquals(#traces[2], #traces[1])
      for i, line in ipairs(traces[1]) do lu.assertEquals(traces[2][i], line) end
    end
  end
end

-- Texts at once share the passes of their chains as they share those of draft steps.
function TestChain.test_several_texts_share_its_passes()
  local pair <close> = assert(dt.fake(MODELS))
  local passes = {}
  for i, body in ipairs { LOOP, CALL } do
    local how = request(body, 0, 4)
    how.prompts, how.tokens = { " 1", " 2", " 1 5" }, 30
    local results = assert(pair:generate_batch(how))
    passes[i] = {}
    for _, result in ipairs(results) do
      local stats = result.stats
      lu.assertTrue(stats.drafted > 0 and stats.accepted and stats.iterations > 0)
      table.insert(passes[i], { table.concat(result.tokens, " "), stats.drafted, stats.accepted, stats.iterations })
    end
  end
  lu.assertEquals(#passes[1], 3)
  lu.assertEquals(passes[2], passes[1])
end

os.exit(lu.LuaUnit.run())
