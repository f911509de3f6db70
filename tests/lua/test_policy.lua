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

TestLossBudget = {}

local CREDIT, LOSS, SAVED, TEXT, SHORT, STEP = 10, 0.01, 32, 0.05, 200, 0.05

-- What costs:recall and costs:keep do, for the sequences that share `store`.
local function ledger(store)
  return { recall = function(_, name) return store[name] and { table.unpack(store[name]) } end,
           keep = function(_, name, list) store[name] = { table.unpack(list) } end }
end

-- Costs are linear: the first row, and each further row; the first draft pass of an iteration costs 0.05 more.
local function loss_budget(target_row, draft, draft_row, sequences, store)
  local kept = ledger(store or {})
  return policy.loss_budget {
    target = function(_, rows) return 1 + target_row * (rows - 1) end,
    draft = function(_, rows) return draft + draft_row * (rows - 1) end,
    first = function() return draft + 0.05 end,
    block = function() return 0 end,
    sequences = function() return sequences or 1 end,
    cache_miss = function(_, passes) return passes == 0 and STEP / 67 or error "another number" end,
    recall = kept.recall, keep = kept.keep,
  }
end

-- Iterations with one draft pass each where there may be one: the numbers of those that had one, and all balances.
local function try(a, iterations, rows, accepted)
  local tries, balances = {}, {}
  for i = 1, iterations do
    if not a:pauses() and a:affords(100) then
      a:pass(1)
      a:close(rows, accepted)
      tries[#tries + 1] = i
    end
    balances[i] = a.balance
  end
  return tries, balances
end

-- Texts of a pair one after the other, in which accepted(text) nodes of each iteration with drafts are right: the
-- passes that each gained, and the tokens of each.
local function texts(n, tokens, accepted)
  local store, gains, lengths = {}, {}, {}
  for text = 1, n do
    local a = loss_budget(0.01, 0.15, 0, 1, store)
    while a.tokens < tokens do try(a, 1, 4, accepted(text)) end
    gains[text], lengths[text] = a.balance, a.tokens
  end
  return gains, lengths
end

-- Checks both promises: over the first texts together, and in each text. One additional pass is allowed, since it may
-- begin when little is left.
local function check_promises(gains, lengths, most)
  local gain, tokens, pass = 0, 0, 0.28
  for text, g in ipairs(gains) do
    gain, tokens = gain + math.min(g, most or 0), tokens + lengths[text]
    lu.assertTrue(gain >= -CREDIT - LOSS * tokens - pass, ("%d texts: %g"):format(text, gain))
    lu.assertTrue(g >= -TEXT * math.max(SHORT, lengths[text]) - pass, ("text %d: %g"):format(text, g))
  end
  return gain, tokens
end

function TestLossBudget.test_useless_drafts_cost_the_opening_credit_and_one_percent_over_all_texts()
  local gains, lengths = texts(20, 400, function() return 0 end)
  local gain, tokens = check_promises(gains, lengths)
  lu.assertTrue(gain < -CREDIT - LOSS * tokens + 1, gain) -- it is used up
  lu.assertTrue(gains[1] < -CREDIT, gains[1])
  lu.assertTrue(gains[20] > -LOSS * 400 - 0.5, gains[20])
end

function TestLossBudget.test_drafts_that_turn_useless_cost_five_percent_of_a_text_until_earlier_gains_are_lost()
  local gains, lengths = texts(20, 200, function(text) return text <= 5 and 1 or 0 end)
  lu.assertTrue(gains[5] > 60) -- of which the budget saves 32 passes
  for text = 6, 8 do lu.assertTrue(gains[text] < -0.9 * TEXT * SHORT, text) end
  for text = 11, 20 do lu.assertTrue(gains[text] > -LOSS * 200 - 0.5, text) end
  for text, g in ipairs(gains) do lu.assertTrue(g >= -TEXT * math.max(SHORT, lengths[text]) - 0.28, text) end
  local lost = 0
  for text = 6, 20 do lost = lost - gains[text] end
  lu.assertTrue(lost <= SAVED + LOSS * 15 * 200 + 0.28, lost)
end

function TestLossBudget.test_drafts_that_are_right_in_the_first_text_only_never_cost_more_than_that_text_gained()
  local gains, lengths = texts(40, 200, function(text) return text == 1 and 1 or 0 end)
  local gain, tokens = 0, 0
  for text, g in ipairs(gains) do gain, tokens = gain + g, tokens + lengths[text] end
  lu.assertTrue(gain >= gains[1] - SAVED - LOSS * tokens - 0.28, gain)
  check_promises(gains, lengths, SAVED)
end

function TestLossBudget.test_sequences_at_once_share_the_pairs_budget()
  local store = {}
  local one, two = loss_budget(0, 0.15, 0, 1, store), loss_budget(0, 0.15, 0, 1, store)
  local tries = 0
  for _ = 1, 60 do tries = tries + #try(one, 1, 1, 0) + #try(two, 1, 1, 0) end
  lu.assertTrue(tries * 0.25 <= CREDIT + 120 * LOSS + 0.5 and tries * 0.25 >= CREDIT, tries)
end

function TestLossBudget.test_a_new_policy_object_begins_with_the_credit_where_nothing_is_kept()
  for _ = 1, 2 do lu.assertEquals(#try(loss_budget(0, 0.15, 0), 40, 1, 0), 40) end -- 40 * 0.25 = 10
  lu.assertTrue(#try(loss_budget(0, 0.15, 0), 60, 1, 0) < 45)
end

function TestLossBudget.test_what_the_draft_model_missed_has_its_cost()
  local cheap, expensive = try(loss_budget(0, 0.15, 0), 2000, 1, 0), try(loss_budget(0, 0.15, LOSS), 2000, 1, 0)
  lu.assertEquals(cheap[40], expensive[40])
  lu.assertEquals({ #cheap > 100, #expensive < 45 }, { true, true }) -- the cost rises as fast as the budget
end

function TestLossBudget.test_the_first_pass_must_be_affordable()
  local function first(draft) return #try(loss_budget(0, draft, 0), 1, 1, 0) end
  lu.assertEquals({ first(CREDIT - 0.05 - STEP - 1e-9), first(CREDIT + LOSS - 0.05 - STEP + 1e-9) }, { 1, 0 })
  -- more than a text of SHORT tokens may lose
  local expensive = loss_budget(0, CREDIT + 6 * LOSS - 0.05 - STEP - 1e-9, 0)
  lu.assertEquals(#try(expensive, SHORT + 1, 1, 0), 0)
  lu.assertEquals(#try(expensive, 1, 1, 0), 1)
end

function TestLossBudget.test_good_times_leave_so_much_and_no_more()
  local store = {}
  try(loss_budget(0, 0.15, 0, 1, store), 100, 1, 5)
  lu.assertEquals(store.loss_budget, { SAVED })
end

function TestLossBudget.test_it_owes_what_drafts_have_not_brought_yet()
  local a = loss_budget(0, 0.15, 0)
  lu.assertFalse(a:pauses() or a:owes())
  try(a, 1, 1, 0)
  lu.assertTrue(a:owes())
  try(a, 1, 1, 1)
  lu.assertFalse(a:owes())
end

function TestLossBudget.test_an_iteration_has_its_overhead_and_the_first_row_or_pauses()
  local function budget(left)
    local a = loss_budget(0, 0.15, 0)
    a.balance = left - TEXT * SHORT
    return a:budget { plain = 1, overhead = 0.125, verify = { 1.125, 1.5 }, saved = 0, resume = 0 }
  end
  lu.assertAlmostEquals(budget(0.5 + 1e-9), 0.5, 1e-6)
  lu.assertNil(budget(0.5 - 1e-9))
end

function TestLossBudget.test_the_longest_pass_takes_what_one_iteration_may_stake_if_all_is_sure()
  local a = loss_budget(0, 0.15, 0)
  local function longest(left)
    a.balance = left - TEXT * SHORT
    a:budget { plain = 1, overhead = 0.125, verify = { 1.125, 1.5 }, saved = 0, resume = 0 }
    return a.longest - 1.125
  end
  lu.assertAlmostEquals(longest(4.125), 2, 1e-12) -- the overhead is not for rows
  lu.assertAlmostEquals(longest(0.625), 0.375, 1e-12) -- a row
end

function TestLossBudget.test_one_iteration_stakes_as_large_a_part_as_the_guess_is_likely_or_a_row()
  local a, row = loss_budget(0, 0.15, 0), 0.25
  lu.assertEquals({ a:stake(4, row, 1), a:stake(4, row, 0.5), a:stake(4, row, 0.125) }, { 2, 2, 0.5 })
  lu.assertEquals({ a:stake(4, row, 0.0625), a:stake(4, row, 0.0625 - 1e-9), a:stake(4, row, 0) }, { 0.25, 0.25, 0.25 })
  lu.assertEquals({ a:stake(0.25, row, 0.5), a:stake(0.125, row, 0.5) }, { 0.25, 0.125 }) -- a row, if there is one
end

function TestLossBudget.test_overhead_grows_with_the_sequences()
  local function first(sequences)
    return #try(loss_budget(0, CREDIT - 0.05 - 3.5 * STEP, 0, sequences), 1, 1, 0)
  end
  lu.assertEquals({ first(3), first(4) }, { 1, 0 })
end

function TestLossBudget.test_a_draft_pass_that_few_sequences_share_has_its_whole_cost()
  local function took(k)
    local a = loss_budget(0, 0.15, 0.01, 4)
    lu.assertFalse(a:pauses())
    lu.assertTrue(a:affords(100))
    a:pass(1, k)
    local first = a.took
    a:pass(3, k)
    return { first - 4 * STEP, a.took - first - 4 * STEP }
  end
  for k = 1, 4 do
    lu.assertAlmostEquals(took(k)[1], 0.2 * 4 / k, 1e-12)
    lu.assertAlmostEquals(took(k)[2], 0.17 * 4 / k, 1e-12)
  end
  lu.assertEquals(took(), took(4))
end

TestPassCosts = {}

-- Costs of s sequences whose passes take no time; only the policy's overhead does.
local function misses(again, after, paused, s)
  local list = { [0] = again, after, paused }
  return { revision = function() return 1 end, sequences = function() return s end,
           target = function(_, n) return n end, cache_miss = function(_, passes) return list[passes] end,
           first = function() return 0 end, draft = function() return 0 end, block = function() return 0 end }
end

function TestPassCosts.test_overhead_is_a_multiple_of_cache_misses()
  local seq = { length = function() return 1 end, drafts = true }
  for s = 1, 2 do
    local p = policy.pass_costs(misses(1, 8, 64, s), seq)
    lu.assertAlmostEquals(p.overhead, 16 * s, 1e-12)
    lu.assertAlmostEquals(p.resume, (80 - 16) * s, 1e-12)
    lu.assertAlmostEquals(p.saved, 2 * s, 1e-12)
    lu.assertAlmostEquals(p.verify[1] - p.plain, 16 * s, 1e-12)
    lu.assertAlmostEquals(p.plain, 1, 1e-12)
    lu.assertAlmostEquals(p.verify[4] - 4, (16 + 3 * 4) * s, 1e-12)
    lu.assertAlmostEquals(p.row[2], 1 + 4 * s, 1e-12)
    lu.assertAlmostEquals(p.drafting[s].first, 6.8 * s, 1e-12)
    lu.assertAlmostEquals(p.drafting[s].draft[3], 6.8 * s, 1e-12)
  end
  lu.assertEquals(policy.pass_costs(misses(1, 8, 12.8, 1), seq).resume, 0) -- after a pause it takes no less
end

-- The first row of a block guesses nothing.
function TestPassCosts.test_a_block_head_takes_one_pass_for_all_levels()
  local costs = misses(0, 0, 0, 4)
  function costs.block() return 7 end
  function costs.draft(_, n, _, k) return 100 * n + k end
  local head = policy.pass_costs(costs, { length = function() return 1 end, drafts = true }).drafting
  lu.assertEquals(head[2].block, 7)
  lu.assertEquals(head[2].pass[3], 2 * (400 + 2)) -- two of four sequences share it
  lu.assertEquals(head[2].first, 2 * (800 + 2))
  lu.assertEquals(head[4].pass[1], 200 + 4)
  lu.assertEquals(head[2].draft[5], 0) -- a level's guesses are there
end

-- An untried draft counts as right in 80 % of its guesses; the target takes 1 ms, a row nothing.
function TestPassCosts.test_a_block_is_as_long_as_its_guesses_pay_for()
  local calibration = setmetatable({}, { __index = function() return function() end end })
  local function width(ms, brought)
    local costs = misses(0, 0, 0, 1)
    function costs.block() return 7 end
    function costs.draft(_, n) return ms(n - 1) end
    function costs.target(_, n) return 1 + n / 1e6 end
    function costs.recall() end
    function costs.keep() end
    local seq = { length = function() return 1 end, left = function() return 100 end, unread = function() return 0 end,
                  drafts = true, coupled = false }
    local g = require "dt.policy.guesses"(policy.pass_costs(costs, seq), seq, function() return calibration end)
    local asked
    local tree = { draft_step = function(_, _, _, how) asked = how.width or asked return 1 end }
    for _ = 1, 1 + (brought and 20 or 0) do
      g:begin(1e9, 0)
      local n = 0
      while g:worth(1, 1, 1, n) do
        g:draft(tree, { n }, 1, 1, 1)
        n = n + 1
      end
      g.pass = { 1, 2, 3, 4, 5, 6, 7 }
      g:settle(1, brought or {}, { 1, 2, 3, 4, 5, 6, 7 }, brought and n or 0)
    end
    return asked
  end
  lu.assertEquals(width(function(w) return w / 1000 end), 7)
  lu.assertEquals(width(function(w) return w <= 3 and 0.01 or 0.01 + w / 2 end), 3)
  lu.assertEquals(width(function(w) return w / 10 end), 7)   -- 0.8^7 > 0.1
  lu.assertEquals(width(function(w) return w / 3.9 end), 6)  -- 0.8^6 > 1 / 3.9 > 0.8^7
  local two = width(function(w) return w / 10 end, { 1, 1, 0, 0, 0, 0, 0 }) -- two levels are right, no others
  lu.assertTrue(two == 2 or two == 3, two) -- it tries another now and then
end

function TestPassCosts.test_a_row_shares_the_cost_of_up_to_four()
  local costs = misses(0, 0, 0, 1)
  local ms = { 10, 14, 15, 15.5, 15.75, 15.875, 20 }
  function costs.target(_, n) return ms[n] or 20 + 9 * (n - 7) end
  local row = policy.pass_costs(costs, { length = function() return 1 end, drafts = true }).row
  lu.assertAlmostEquals(row[0], 5.75 / 4, 1e-12) -- not 5.875 / 5
  lu.assertAlmostEquals(row[1], 1.875 / 4, 1e-12)
  lu.assertAlmostEquals(row[2], 0.875 / 3, 1e-12) -- the fourth would be expensive
  lu.assertAlmostEquals(row[5], 4.125, 1e-12)
end

function TestPassCosts.test_a_node_is_worth_its_row_if_the_loss_budget_may_lose_as_many()
  local pass_costs = policy.pass_costs(misses(0, 0, 0, 1), { length = function() return 1 end, drafts = true })
  lu.assertTrue(pass_costs:worth(0.25, 0.25, 2, { longest = 4 }))
  lu.assertFalse(pass_costs:worth(0.25, 0.25 - 1e-9, 2, { longest = 4 }))
  lu.assertFalse(pass_costs:worth(0.25, 0.25, 2, { longest = 4 - 1e-9 }))
end

function TestPassCosts.test_nodes_that_are_not_verified_have_overhead_too()
  local pass_costs = policy.pass_costs(misses(0.03125, 0, 0, 1), { length = function() return 1 end, drafts = true })
  local alpha, best, kept = { [0] = 1, 0.5, 0.75, 0.25 }, {}, nil
  local tree = { keep = function(_, k) kept = k end,
                 best = function(_, _, _, _, list) table.move({ 2, 1, 3 }, 1, 3, 1, list) end }
  local function choose(left)
    local k, ms = pass_costs:choose(tree, 3, alpha, 0.25, loss_budget(0, 0.15, 0), left, best)
    return { k, ms, kept }
  end
  lu.assertEquals(choose(1.125), { 1, 1.375, 1 })   -- a row, and the nodes of three
  lu.assertEquals(choose(4.5), { 2, 2.375, 2 })     -- half of it is for two rows
  lu.assertEquals(choose(1.125 - 1e-9), { 0, 0.375, 0 })
end

function TestPassCosts.test_what_sequences_share_costs_each_its_part_and_what_one_reads_makes_all_wait()
  local costs = { revision = function() return 1 end, sequences = function() return 6 end,
                  target = function() return 1 end,
                  first = function(_, _, k) return 4 + k end,
                  draft = function(_, n, _, k) return 2 + n * k end, block = function() return 0 end,
                  read = function(_, n) return 2 + n end, cache_miss = function() return 0.01 end }
  local pass_costs = policy.pass_costs(costs, { length = function() return 1 end, drafts = true })
  local own = 6 * 0.0085 -- the overhead of a draft pass, of all sequences
  for k, expected in pairs { [1] = { 30, 42 }, [2] = { 18, 36 }, [6] = { 10, 32 } } do
    local cost = pass_costs.drafting[k]
    lu.assertAlmostEquals(cost.first - own, expected[1], 1e-12)
    lu.assertAlmostEquals(cost.draft[5] - own, expected[2], 1e-12)
  end
  lu.assertEquals({ pass_costs:reading(0), pass_costs:reading(5) }, { 0, 42 })
end

TestPace = {}

-- A pass of plain decoding takes 2 ms, one with overhead 2.5.
local function pace() return policy.pace { plain = 2, verify = { 2.5 } } end

function TestPace.test_begins_with_three_tokens_a_pass_and_forgets_them()
  local p = pace()
  lu.assertAlmostEquals(p:begin(1, 0), 3 / 2.5, 1e-12)
  p:observe(4, 3)
  lu.assertAlmostEquals(p:begin(1, 0), (0.98 * 3 + 4) / (0.98 * 2.5 + 3), 1e-12)
  for _ = 1, 1000 do p:observe(4, 3) end
  lu.assertAlmostEquals(p:begin(1, 0), 4 / 3, 1e-8)
end

function TestPace.test_is_plain_decodings_at_least()
  local p = pace()
  p:observe(1, 400)
  lu.assertEquals(p:begin(1, 0), 1 / 2)
end

function TestPace.test_paused_iterations_were_plain_ones()
  local paused, made = pace(), pace()
  for _ = 1, 5 do made:observe(1, 2) end
  lu.assertAlmostEquals(paused:begin(1, 5), made:begin(1, 0), 1e-12)
end

function TestPace.test_goes_with_the_costs()
  lu.assertAlmostEquals(pace():begin(1.2, 0), 3 / (1.2 * 2.5), 1e-12)
  local p = pace() -- what comes in a pause has the new cost already
  lu.assertAlmostEquals(p:begin(1.2, 1), (0.98 * 3 + 1) / (0.98 * 1.2 * 2.5 + 2), 1e-12)
end

-- Guesses that bring what `brings` says of a token, a pass for them taking `first` of the target's, up to 128 tokens.
-- A second row takes nothing, a third 0.4, and each further one a whole pass.
local function guesses(first, brings, text, costs)
  local model = { first = first, draft = setmetatable({}, { __index = function() return first end }) }
  local drafting = setmetatable({}, { __index = function() return model end })
  local verify = { 1, 1, 1.4, 2.4, 3.4, 4.4, 5.4, 6.4, 7.4 }
  local pass_costs = { plain = 1, verify = verify, row = { [0] = 0, 0.4 }, sequences = 1, drafting = drafting,
                   until_length = 128, reading = function() return text.reading or 0 end,
                   costs = costs or ledger({}), revision = 0 }
  local seq = { length = function() return text.length end, left = function() return 100 end,
                unread = function() return 0 end }
  local function calibration() return { observe = function() end, state = function() end } end
  local g = require "dt.policy.guesses"(pass_costs, seq, calibration)
  g.brings[1] = brings or g.brings[1]
  g:begin(9, 0)
  return g
end

TestGuesses = {}

function TestGuesses.test_are_quiet_until_costs_change_or_they_try_again()
  local text = { length = 100 }
  lu.assertEquals(guesses(0.5, nil, text):quiet(1), 0) -- 0.8 tokens are worth it
  lu.assertEquals(guesses(0.81, nil, text):quiet(1), 29) -- nor ever, up to 128 tokens
  lu.assertEquals(guesses(0.79, nil, text):quiet(1), 0)
  local g = guesses(0.5, 0.4, text) -- they brought too little, and try after 4 iterations without
  lu.assertEquals(g:quiet(1), 4)
  g:begin(9, 3)
  lu.assertEquals(g:quiet(1), 1)
  g:begin(9, 1)
  lu.assertEquals(g:quiet(1), 0)
  text.length = 126
  lu.assertEquals(guesses(0.5, 0.4, text):quiet(1), 3)
  text.reading = 31 -- of what was not read: 100 tokens gain 0.3 each
  lu.assertEquals(guesses(0.5, nil, text):quiet(1), 3)
  text.reading = 29
  lu.assertEquals(guesses(0.5, nil, text):quiet(1), 0)
  g.passes = 1
  lu.assertEquals(g:quiet(1), 0)
end

-- A file of a busy machine says that two rows take nine passes; the first passes show that they do not.
function TestGuesses.test_what_is_expected_of_a_draft_that_was_not_asked_follows_the_learned_costs()
  local g = guesses(0.5, nil, { length = 100 })
  local right = g.pass_costs.verify
  g.pass_costs.verify, g.pass_costs.revision = { 1, 9, 9, 9, 9, 9, 9, 9, 9 }, 1
  g:begin(9, 0)
  lu.assertEquals(g:quiet(1), 16) -- rather than 29: it looks again soon
  g.pass_costs.verify, g.pass_costs.revision = right, 2
  g:begin(9, 16)
  lu.assertEquals(g:quiet(1), 0)
end

-- What is known after an iteration at the rate 1: nodes 1, 2, .. of the passes `by`, as likely as alpha says. A pass
-- takes 0.1.
local function settled(g, by, alpha)
  g.pass, g.passes, g.open, g.net, g.took = by, by[#by], { 1, 0.9 }, { 0, 0 }, { 0.1, 0.1 }
  g:settle(1, alpha, { 1, 2 }, #alpha)
  return g.brings
end

function TestGuesses.test_of_a_first_pass_take_the_first_row_and_of_another_one_the_second()
  local expected, chain = 0.8 - 0.4, 0.8 + 0.64 - 0.4 - 0.1 -- rows at 0 and 0.4, and a second pass
  lu.assertAlmostEquals(guesses(0.1, nil, {}).brings[1], chain, 1e-12)
  lu.assertAlmostEquals(guesses(0.5, nil, {}).brings[1], 0.8, 1e-12) -- the second pass would gain nothing
  lu.assertAlmostEquals(guesses(0.1, nil, {}).brings[2], expected, 1e-12)
  local brings = settled(guesses(0.1, nil, {}), { 1, 2 }, { 0.9, 0.5 }) -- 0.9 - 0, of which 0.9 bring 0.5 - 0.4
  lu.assertAlmostEquals(brings[2], expected + 0.26 * (0.1 / 0.9 - expected), 1e-12)
  lu.assertAlmostEquals(brings[1], chain + 0.26 * (0.9 + 0.1 - 0.1 - chain), 1e-12)
  brings = settled(guesses(0.1, nil, {}), { 1, 1 }, { 0.9, 0.5 }) -- both of the first
  lu.assertAlmostEquals(brings[1], chain + 0.26 * (0.9 + 0.5 - 0.4 - chain), 1e-12)
end

function TestGuesses.test_of_further_passes_teach_what_these_bring_and_without_any_it_fades()
  local g = guesses(0.1, nil, {})
  local expected = g.brings[2]
  lu.assertAlmostEquals(settled(g, { 1 }, { 0.9 })[2], expected, 1e-12)
  g.brings[2] = 0
  lu.assertAlmostEquals(settled(g, { 1 }, { 0.9 })[2], 0.01 * expected, 1e-12)
  g.passes = 0
  g:settle(1, {}, {}, 0) -- who asks nothing learns nothing
  lu.assertAlmostEquals(g.brings[2], 0.01 * expected, 1e-12)
end

-- The calibration of a draft says that half of its likeliest guesses are right.
function TestGuesses.test_of_a_calibrated_draft_are_expected_to_be_right_as_often_in_later_texts_too()
  local store = { guesses1 = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5 } }
  local first = guesses(0.1, nil, {}, ledger(store))
  settled(first, { 1 }, { 0.9 })
  first.reach = 0
  first:observe({}, { accepted = 1 })
  local second = guesses(0.1, nil, {}, ledger(store))
  lu.assertEquals({ first.promise, second.promise }, { 0.5, 0.5 })
  lu.assertEquals({ second.brings, second.asked, second.untried }, { first.brings, first.asked, false })
end

TestSources = {}

function TestSources.test_tell_how_many_tokens_must_have_stood_before_a_guess_as_likely()
  local function source(needs, most) return { estimates = { 0.25, 0.5, most or 0.75 }, needs = needs } end
  local function needs(q, ...) return policy.sources { ... }:needs(q) end
  lu.assertEquals({ needs(0.5, source(true)), needs(0.5 + 1e-9, source(true)), needs(0.1, source(true)) }, { 2, 3, 1 })
  lu.assertEquals(needs(0.76, source(true)), 3) -- none is as likely
  lu.assertEquals(needs(0.4, source(true), false, source(true)), 2)
  lu.assertNil(needs(0.5, source(true), source()))
  lu.assertNil(needs(0.5, source(), source(true)))
  lu.assertNil(needs(0.5))
  local sources = policy.sources { source(1) }
  for _ = 1, 2 do sources:learn(2, false) end
  lu.assertEquals({ sources:needs(0.25), sources:needs(0.25 + 1e-9) }, { 1, 3 }) -- after wrong ones of two tokens
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
  lu.assertEquals(select(2, params_of({}, "three")).message, "knobs: no preset 'three' (it has: two)")
  lu.assertEquals(select(2, params_of { n = {} }).message, "knobs: n =  is not an integer")
  lu.assertErrorMsgContains("params.n is a function", params_of, { n = print })
end

os.exit(lu.LuaUnit.run())
