-- Several sequences at once, on scripted pairs: each equals the one that is generated alone, whatever the others do.
local dt = require "dt"
local lu = require "luaunit"
local HERE = arg[0]:match "^(.*/)" or "./"
local HOSTILE = HERE .. "../exact/hostile/"
local VOCAB = 60
local TOKENS = { [HOSTILE .. "random_trees.lua"] = { vocab = VOCAB } }

-- Where passes cost what makes drafting pay.
local COSTS = { contexts = { 128 }, rows = { 1, 257 }, target = { { 1.0, 9.0 } }, draft = { { 0.125, 1.125 } } }

local function fake(options)
  local fields = { vocab = VOCAB, context = 512, costs = COSTS }
  for name, value in pairs(options or {}) do fields[name] = value end
  return assert(dt.fake(fields))
end

local function prompts(n)
  local list = {}
  for i = 1, n do list[i] = (" %d %d %d"):format(i, i * 7 % 50, i * 3 % 50) end
  return list
end

local function merged(base, more)
  local both = {}
  for name, value in pairs(base) do both[name] = value end
  for name, value in pairs(more) do both[name] = value end
  return both
end

-- The results of plain decoding for each prompt alone, with its own seed.
local function alone(pair, list, options)
  local results = {}
  for i, prompt in ipairs(list) do
    results[i] = assert(pair:generate(merged(options, { policy = "ar", prompt = prompt,
                                                        seed = (options.seed or 0) + i - 1 })))
  end
  return results
end

local function assert_same(results, expected, what)
  lu.assertEquals(#results, #expected)
  for i, result in ipairs(results) do
    lu.assertEquals(result.tokens, expected[i].tokens, ("%s, prompt %d"):format(what, i))
    lu.assertEquals(result.text, expected[i].text)
    lu.assertEquals(result.finish_reason, expected[i].finish_reason)
  end
end

TestBatch = {}

function TestBatch.test_every_policy_gives_each_text_what_it_is_alone()
  local names = { "ar", "linear", "fixed_tree", "dynatree", "hf_assisted", "eagle2", "opt_tree", "dyspec", "specinfer",
                  "prompt_lookup", "cast", "rate", "token_recycling", "sequoia", "caddtree", "talon", "adaptive",
                  "lookahead", "suffix", "echo", "ddtree" }
  for _, name in ipairs { "random_trees", "past_the_room", "duplicates", "empty_at_random", "keep_random",
                          "rollbacks" } do
    names[#names + 1] = HOSTILE .. name .. ".lua"
  end
  local pair, list = fake(), prompts(7)
  for _, sampling in ipairs { {}, { temp = 1.0, top_p = 0.9, seed = 3 } } do
    local options = merged(sampling, { tokens = 40, ignore_eos = true })
    local expected = alone(pair, list, options)
    for _, name in ipairs(names) do
      for _, slots in ipairs { 1, 3, 8 } do
        local results, failures = pair:generate_batch(merged(options, { policy = name, params = TOKENS[name],
                                                                        prompts = list, slots = slots }))
        lu.assertEquals(failures, {}, name)
        assert_same(results, expected, ("%s, %d slots"):format(name, slots))
      end
    end
  end
end

-- Same statistics too: what a policy draws by chance depends on its seed only.
function TestBatch.test_a_policy_draws_what_it_would_alone()
  local pair, list = fake(), prompts(5)
  local options = { policy = HOSTILE .. "random_trees.lua", params = { vocab = VOCAB }, tokens = 60 }
  local results = assert(pair:generate_batch(merged(options, { prompts = list, slots = 3, seed = 11 })))
  for i, prompt in ipairs(list) do
    local solo = assert(pair:generate(merged(options, { prompt = prompt, seed = 11 + i - 1 })))
    lu.assertEquals(results[i].stats.drafted, solo.stats.drafted)
    lu.assertEquals(results[i].stats.iterations, solo.stats.iterations)
    lu.assertEquals(results[i].seed, solo.seed)
  end
end

function TestBatch.test_texts_end_by_themselves_and_waiting_prompts_take_their_places()
  -- Token t is followed by t + 1, and 40 ends the text: prompt t has 40 - t tokens to go.
  local target = {}
  for t = 1, 39 do target[tostring(t)] = { [t + 1] = 1.0 } end
  local pair = fake { target = target, eos = 40 }
  local list, order = { " 1", " 38", " 20", " 36", " 39", " 5" }, {}
  local done = pair:generate_batch { policy = "ar", prompts = list, slots = 2, on_done = function(i, result, failure)
    lu.assertNil(failure)
    lu.assertEquals(result.finish_reason, "eos")
    lu.assertEquals(#result.tokens, 40 - tonumber(list[i]))
    lu.assertEquals(result.batch, { index = i, slots = 2, prompt = i })
    order[#order + 1] = i
  end }
  lu.assertTrue(done)
  lu.assertEquals(order, { 2, 3, 4, 5, 1, 6 }) -- 39 iterations of 1; at the same time 2, 20, 4, 1, and then 35
end

function TestBatch.test_prefixes_and_limits()
  local pair = fake()
  local first = assert(pair:prefix " 3 4 5")
  local results, failures = pair:generate_batch { policy = "linear", prompts = { first, " 9", first, "" }, tokens = 10 }
  lu.assertEquals(results[1].tokens, results[3].tokens)
  lu.assertEquals(#results[2].tokens, 10)
  lu.assertStrContains(failures[4].message, "prompt is empty")
  lu.assertEquals(failures[4].kind, "input")
  lu.assertEquals(results[4].finish_reason, "error")
  for slots, message in pairs { [257] = "generate: slots: 257 is out of range: 1..256",
                                 [0] = "generate: slots: 0 is out of range" } do
    lu.assertErrorMsgContains(message, pair.generate_batch, pair,
                              { policy = "ar", prompts = { " 1" }, slots = slots })
  end
  lu.assertErrorMsgContains("not a list of prompts", pair.generate_batch, pair, { policy = "ar", prompts = {} })
  lu.assertErrorMsgContains("unknown key 'prompt'", pair.generate_batch, pair, { policy = "ar", prompt = " 1" })
end

local function source(body, options)
  return ('local policy = require "dt.policy"\nlocal P = policy.define { name = "p"%s }\n%s\nreturn P'):format(
    options or "", body)
end

-- Each text of a batch has a seed of its own. The policy is opened with seed 0, with which its file does not fail.
function TestBatch.test_a_policy_whose_file_fails_with_some_seeds_fails_in_their_results_only()
  local flawed, order, failed = "assert(math.random(2) == 2, 'a bad seed')" .. source "", {}, 0
  fake():generate_batch { source = flawed, prompts = prompts(16), tokens = 5, slots = 3, seed = 1,
                          on_done = function(i, result, failure)
    order[#order + 1] = i
    lu.assertEquals(result.batch, { index = i, slots = 3, prompt = i })
    if not failure then return end
    failed = failed + 1
    lu.assertStrContains(failure.message, "a bad seed")
  end }
  table.sort(order)
  lu.assertEquals(order, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 })
  lu.assertTrue(failed > 0 and failed < 16)
end

function TestBatch.test_a_policy_that_fails_ends_its_own_text_only()
  local pair, list = fake(), prompts(4)
  local options = { tokens = 30, ignore_eos = true }
  local expected = alone(pair, list, options)
  local bad = {
    ["went wrong"] = "error 'went wrong'",
    ["longer than"] = "while true do pcall(error) end",
    ["there is no node 99"] = "tree:draft_step(99)",
    ["without a call of commit"] = "P.step = function() end",
    ["no candidates yet"] = "tree:draft_step(0); tree:add(0, 3); tree:branch(1, 1)",
  }
  for message, statement in pairs(bad) do
    -- The third prompt's policy fails at its fifth iteration; others draft a chain.
    local text = source(([[
      function P:draft(tree)
        self.n = (self.n or 0) + 1
        if tree.seq:token(1) == 3 and self.n == 5 then %s end
        local node = tree.root
        for _ = 1, 3 do
          tree:draft_step(node)
          local first, last = tree:branch(node, 1)
          if last < first then break end
          node = first
        end
      end]]):format(statement))
    local results, failures = pair:generate_batch(merged(options, { source = text, prompts = list, slots = 3 }))
    lu.assertStrContains(failures[3].message, message)
    lu.assertEquals(failures[3].kind, "policy")
    lu.assertEquals(results[3].finish_reason, "policy")
    local n = #results[3].tokens
    lu.assertTrue(n >= 4 and n < 30)
    lu.assertEquals(results[3].tokens, table.move(expected[3].tokens, 1, n, 1, {}))
    for _, i in ipairs { 1, 2, 4 } do lu.assertEquals(results[i].tokens, expected[i].tokens) end
  end
end

function TestBatch.test_a_draft_step_tells_how_many_sequences_share_its_pass()
  local pair, list = fake(), prompts(4)
  local source_of_all = source [[
    function P:draft(tree)
      local seq = tree.seq
      local all, again = tree:draft_step(0), tree:draft_step(0)
      tree:branch(0, 1)
      local some = seq:token(1) > 2 and tree:draft_step({ 1 }) or -1
      local one = seq:token(1) > 3 and seq:draft_step({ tree:add(1, 3) }) or -1
      if self.seen then return end
      self.seen = true
      seq:log("all", all) seq:log("again", again) seq:log("some", some) seq:log("one", one)
    end]]
  local function numbers(slots)
    local told = {}
    local options = { source = source_of_all, prompts = list, slots = slots, tokens = 9, ignore_eos = true }
    for i, result in ipairs((assert(pair:generate_batch(options)))) do
      local log = result.stats.log
      told[i] = { log.all.last, log.again.last, log.some.last, log.one.last }
    end
    return told
  end
  lu.assertEquals(numbers(4), { { 4, 0, -1, -1 }, { 4, 0, -1, -1 }, { 4, 0, 2, -1 }, { 4, 0, 2, 1 } })
  lu.assertEquals(numbers(1), { { 1, 0, -1, -1 }, { 1, 0, -1, -1 }, { 1, 0, 1, -1 }, { 1, 0, 1, 1 } })
end

-- A policy that drafts, and then pauses for some iterations: what it saw of each call, and its own time.
local PAUSES = [[
  function P:draft(tree)
    tree:draft_step(0)
    tree:branch(0, 1)
    self.calls = (self.calls or 0) + 1
    tree.seq:log("calls", self.calls)
    tree.seq:pause(%s)
  end]]

function TestBatch.test_while_a_policy_pauses_iterations_are_plain_and_it_is_not_called()
  local pair, list = fake(), prompts(7)
  local options = { tokens = 30, ignore_eos = true }
  local expected = alone(pair, list, options)
  for pause, most in pairs { ["0"] = 30, ["1"] = 15, ["4"] = 6, ["1 << 62"] = 1 } do
    local text = source(PAUSES:format(pause))
    for _, slots in ipairs { 1, 3 } do
      local results, failures = pair:generate_batch(merged(options, { source = text, prompts = list, slots = slots }))
      lu.assertEquals(failures, {})
      assert_same(results, expected, "pause")
      for _, result in ipairs(results) do
        local stats, calls = result.stats, result.stats.log.calls.last
        lu.assertTrue(calls <= most)
        lu.assertTrue(stats.iterations >= calls + (calls - 1) * math.min(tonumber(pause) or 30, 30))
      end
    end
  end
end

-- 1 2 .. 20, again and again: the policy's calls, by the length of the text, and the longest pause.
function TestBatch.test_a_pause_ends_when_the_last_tokens_occur_earlier()
  local target = {}
  for t = 1, 20 do target[tostring(t)] = { [t % 20 + 1] = 1.0 } end
  local pair = assert(dt.fake { vocab = 30, context = 99, target = target })
  local function calls(pause)
    local log = assert(pair:generate { prompt = " 1", tokens = 40, ignore_eos = true, source = ([[
      local P = require "dt.policy".define { name = "p", uses = { draft = false } }
      function P:draft(tree)
        tree.seq:log("paused", tree.seq:paused())
        tree.seq:pause(%s)
      end
      return P]]):format(pause) }).stats.log.paused
    return { log.n, log.most }
  end
  lu.assertEquals(calls "30, 3", { 1 + 18, 21 }) -- at 1, and from 1 .. 20 1 2 3 on
  lu.assertEquals(calls "30, 4", { 1 + 17, 22 })
  lu.assertEquals(calls "5, 3", { 4 + 18, 5 }) -- at 1, 7, 13, 19
  for _, never in ipairs { "30", "30, 0", "30, 64" } do lu.assertEquals(calls(never), { 2, 30 }) end
  lu.assertEquals(calls "0, 3", { 40, 0 })
end

function TestBatch.test_wrong_pauses_are_refused()
  local pair = fake()
  local function fails(text)
    local request = { policy = "p.lua", prompt = " 1", tokens = 3, source = source(PAUSES:format(text)) }
    return select(2, pair:generate(request)).message
  end
  lu.assertStrContains(fails "-1", "seq:pause: n = -1 is negative")
  lu.assertStrContains(fails "0.5", "seq:pause: n")
  lu.assertStrContains(fails "1, -1", "seq:pause: equal = -1 is out of range: 0..64")
  lu.assertStrContains(fails "1, 65", "seq:pause: equal = 65 is out of range: 0..64")
  lu.assertStrContains(fails "1, 'a'", "seq:pause: equal")
end

-- All sequences of a policy of scope "batch" pause together, as long as the shortest of their pauses.
function TestBatch.test_a_batch_pauses_while_all_of_its_sequences_do()
  local pair, list = fake(), prompts(3)
  local options = { tokens = 30, ignore_eos = true }
  local results = assert(pair:generate_batch(merged(options, { prompts = list, slots = 3, policy = "p.lua", source = [[
    local policy = require "dt.policy"
    local P = policy.define { name = "p", scope = "batch", uses = { draft = false } }
    function P:draft(batch)
      self.calls = (self.calls or 0) + 1
      for b = 1, #batch do
        batch[b].seq:log("calls", self.calls)
        batch[b].seq:pause(b + 1)
      end
    end
    return P]] })))
  assert_same(results, alone(pair, list, options), "a batch pauses")
  lu.assertEquals(results[1].stats.log.calls.last, 10)
end

-- A pass that is asked for where a policy cannot wait (inside a comparator) is made at once, for that sequence alone.
function TestBatch.test_a_pass_within_a_sort()
  local pair, list = fake(), prompts(4)
  local options = { tokens = 30, ignore_eos = true }
  local results, failures = pair:generate_batch(merged(options, { prompts = list, slots = 3, source = source [[
    function P:draft(tree)
      table.sort({ 1, 2, 3 }, function(a, b) tree:draft_step(0) return a < b end)
      tree:branch(0, 2)
    end]] }))
  lu.assertEquals(failures, {})
  assert_same(results, alone(pair, list, options), "sort")
end

function TestBatch.test_callbacks_may_do_what_they_like()
  local pair, list, said = fake(), prompts(6), {}
  local function on_done(i)
    for k = 1, #list do list[k] = nil end
    collectgarbage()
    said[#said + 1] = i
    lu.assertErrorMsgContains("the pair is generating", pair.close, pair)
    lu.assertErrorMsgContains("the pair is generating", pair.generate, pair, { policy = "ar", prompt = " 1" })
    lu.assertErrorMsgContains("the pair is generating", pair.generate_batch, pair,
                              { policy = "ar", prompts = { " 1" } })
    lu.assertErrorMsgContains("the pair is generating", dt.measure_costs, pair)
  end
  lu.assertTrue(pair:generate_batch { policy = "linear", prompts = list, slots = 2, tokens = 9, on_done = on_done })
  lu.assertEquals(#said, 6)
  local ended = 0
  lu.assertErrorMsgContains("enough", pair.generate_batch, pair, {
    policy = "linear", prompts = prompts(9), slots = 2, tokens = 9,
    on_done = function() ended = ended + 1 error "enough" end,
  })
  lu.assertEquals(ended, 1)
  pair:close()
end

TestScope = {}

local BATCH = ', scope = "batch"'

function TestScope.test_one_policy_serves_all_texts()
  local pair, list = fake(), prompts(5)
  local options = { tokens = 30, ignore_eos = true }
  local results, failures = pair:generate_batch(merged(options, { prompts = list, slots = 3, source = source([[
    local served = 0
    function P:init(batch)
      assert(#batch == 1 and batch[1].seq.id == 1 and batch[2] == nil)
    end
    function P:draft(batch)
      assert(#batch >= 1 and #batch <= 3 and batch[#batch + 1] == nil and batch[#batch].root == 0)
      for i = 1, #batch do served = math.max(served, batch[i].seq.id) end
      local nodes = {}
      for i = 1, #batch do nodes[i] = { 0 } end
      batch:draft_step(nodes)
      for i = 1, #batch do batch[i]:branch(0, i) end
      nodes[1] = nil
      for i = 2, #batch do nodes[i] = batch[i]:size() > 1 and { 1, 2 } or nil end
      batch:draft_step(nodes, 1)
      for i = 2, #batch do
        local tree = batch[i]
        assert(tree:size() < 2 or tree:confidence(1) and not pcall(tree.confidence, tree, 2))
      end
    end
    function P:observe(batch, outs)
      assert(#outs == #batch)
      for i = 1, #batch do
        assert(outs[i].drafted <= i and outs[i].committed >= 1 and outs[i].accepted == #outs[i].path)
        assert(batch[i].seq:left() >= 0)
      end
    end]], BATCH) }))
  lu.assertEquals(failures, {})
  assert_same(results, alone(pair, list, options), "batch")
  local solo = assert(pair:generate { source = source("", BATCH), prompt = list[1], tokens = 5 })
  lu.assertEquals(solo.tokens, table.move(results[1].tokens, 1, 5, 1, {}))
end

function TestScope.test_mistakes()
  local cases = {
    ["batch:draft_step: a list of nodes for each tree is expected, not number"] = "batch:draft_step(0)",
    ["batch:draft_step: nodes: there is no node 7"] = "batch:draft_step { { 7 } }",
    ["batch:draft_step: not called as a method of a batch"] = "batch.draft_step(batch[1], {})",
    ["tree:size: not called as a method of a tree"] = "batch[1].size(batch)",
    ["batch:commit: this step has committed already"] = "batch:verify_tree() batch:commit() batch:commit()",
    ["this step has committed already"] = "batch[1].seq:verify_tree() batch[1].seq:commit()",
    ["batch:commit: the tree is not verified"] = "batch:commit()",
    ["the sequence of this tree has ended"] = "if old then old:size() end old = batch[2]",
  }
  local pair = fake { target = { ["1"] = { [1] = 1.0 }, ["2"] = { [3] = 1.0 } }, eos = 3 }
  for message, statement in pairs(cases) do
    local text = source("local old\nfunction P:draft(batch) " .. statement .. " end", BATCH)
    local results, failure = pair:generate_batch { source = text, prompts = { " 1", " 2", " 1" }, slots = 2,
                                                   tokens = 9 }
    lu.assertNil(results)
    lu.assertStrContains(failure.message, message)
    lu.assertEquals(failure.kind, "policy")
  end
  local _, failure = pair:generate { source = source("", ', scope = "all"'), prompt = " 1" }
  lu.assertStrContains(failure.message, 'p: scope is "all", not "sequence" or "batch"')
end

-- The target returns NaN after 7: that sequence ends there, the others go on.
function TestBatch.test_a_target_that_fails_ends_its_own_text_only()
  local pair = fake { target = { ["5"] = { [7] = 1.0 }, ["7"] = { [1] = 0 / 0 } } }
  local list = { " 3", " 5", " 4" }
  local results, failures = pair:generate_batch { policy = "linear", prompts = list, slots = 3, tokens = 9 }
  lu.assertStrContains(failures[2].message, "returned NaN at position 1")
  lu.assertEquals({ results[2].tokens, results[2].finish_reason, failures[2].kind }, { { 7 }, "error", "device" })
  for _, i in ipairs { 1, 3 } do
    lu.assertEquals(results[i].tokens, assert(pair:generate { policy = "ar", prompt = list[i], tokens = 9 }).tokens)
  end
end

-- cast: what pays is decided for the mean of the batch, with the rows of all sequences in a pass.
function TestScope.test_cast_weighs_the_whole_batch()
  local pair = fake { costs = { contexts = { 128 }, rows = { 1, 2, 3, 4, 5 }, batch = 1,
                                target = { { 1, 1.01, 1.02, 1.03, 9 } }, draft = { { 0.1, 0.11, 0.12, 0.13, 0.14 } } } }
  local function drafted(slots)
    local results, failures = pair:generate_batch { policy = "cast", prompts = prompts(4), slots = slots, tokens = 40,
                                                    params = { C = 1.0 }, ignore_eos = true }
    lu.assertEquals(failures, {})
    return results[1].stats.drafted
  end
  lu.assertTrue(drafted(1) > 0)
  lu.assertEquals(drafted(4), 0) -- four roots fill the cheap rows
end

os.exit(lu.LuaUnit.run())
