-- cast, caddtree and rate, which weigh probabilities against costs, on scripted pairs with scripted costs.
local lu = require "luaunit"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
local fake, with = probe.fake, probe.with

-- Costs that are straight lines in rows: the first row, and each further one.
local function line(target, target_row, draft, draft_row)
  return { contexts = { 128 }, rows = { 1, 2 }, target = { { target, target + target_row } },
           draft = { { draft, draft + draft_row } } }
end

-- Strictly increasing costs at random, for the same numbers of rows.
local function at_random(first, step)
  local ms = { first }
  for n = 2, 90 do ms[n] = ms[n - 1] + step * math.random() ^ 3 + 1e-6 end
  return ms
end

local function random_costs()
  local rows = {}
  for n = 1, 90 do rows[n] = n end
  return { contexts = { 128 }, rows = rows, target = { at_random(1, 0.2) }, draft = { at_random(0.1, 0.1) } }
end

-- Algorithm 1 of the paper, as it stands there: u and c from `first` (0 or 1) to n.
local function select_by_marks(u, c, first, n, C)
  local selected = 0
  for j = first, n do
    local marked = true
    for i = first, j - 1 do marked = marked and (u[j] - u[i]) / (c[j] - c[i]) >= C end
    if marked then selected = j end
  end
  return selected
end

local function best(p, ids, k)
  table.sort(ids, function(a, b) return p[a] > p[b] or (p[a] == p[b] and a < b) end)
  return table.move(ids, 1, math.min(k, #ids), 1, {})
end

local function sums(p, ids)
  local u = { [0] = 0 }
  for k, id in ipairs(ids) do u[k] = u[k - 1] + p[id] end
  return u
end

-- {depth = {ids}}, p by id, and {id = true} of the drafted ones.
local function layers(nodes)
  local depth, by_depth, p, drafted = { [0] = 0 }, {}, probe.cumlogp(nodes), {}
  for v = 1, #nodes - 1 do
    depth[v] = depth[nodes[v + 1].parent] + 1
    by_depth[depth[v]] = by_depth[depth[v]] or {}
    table.insert(by_depth[depth[v]], v)
    p[v] = math.exp(p[v])
    drafted[v] = nodes[v + 1].confidence ~= nil or nil
  end
  return by_depth, p, drafted
end

local function count_of(set, ids)
  local n = 0
  for _, id in ipairs(ids) do n = n + (set[id] and 1 or 0) end
  return n
end

TestCast = {}

function TestCast.test_expands_as_many_nodes_of_a_layer_as_the_papers_algorithm_selects()
  math.randomseed(3)
  for _ = 1, 12 do
    local costs, C = random_costs(), 0.5 + 4 * math.random()
    local params = { depth = false, rerank = false, allow_empty = false, max_depth = 4, C = C }
    local list = probe.trace(fake(nil, nil, { vocab = 100, costs = costs }), "cast", params, 3, { tokens = 40 })
    for _, iteration in ipairs(list) do
      local by_depth, p, drafted = layers(iteration.nodes)
      for d = 1, #by_depth - 1 do
        local candidates, c = best(p, by_depth[d], 12), { [0] = 0 }
        for k = 1, #candidates do c[k] = costs.draft[1][k] / costs.target[1][1] end
        local n = select_by_marks(sums(p, candidates), c, 1, #candidates, C)
        lu.assertEquals(count_of(drafted, by_depth[d]), n)
        lu.assertEquals(count_of(drafted, table.move(candidates, 1, n, 1, {})), n) -- and they are the best
      end
    end
  end
end

function TestCast.test_verifies_as_many_nodes_as_the_papers_algorithm_selects()
  math.randomseed(4)
  for trial = 1, 12 do
    local costs, C, empty = random_costs(), 0.5 + 6 * math.random(), trial % 2 == 0
    local params = { depth = false, breadth = false, allow_empty = empty, max_depth = 3, top_k = 5, C = C }
    local list = probe.trace(fake(nil, nil, { vocab = 100, costs = costs }), "cast", params, 3, { tokens = 40 })
    for _, iteration in ipairs(list) do
      local _, p = layers(iteration.nodes)
      local ids, kept, c = {}, {}, {}
      for v = 1, #iteration.nodes - 1 do
        ids[v], kept[v] = v, iteration.nodes[v + 1].kept or nil
      end
      local all = table.move(ids, 1, #ids, 1, {})
      ids = best(p, ids, 72)
      for k = 0, #ids do c[k] = costs.target[1][k + 1] / costs.target[1][1] end
      local n = select_by_marks(sums(p, ids), c, empty and 0 or 1, #ids, C)
      lu.assertEquals(count_of(kept, all), n)
      lu.assertEquals(count_of(kept, table.move(ids, 1, n, 1, {})), n)
    end
  end
end

-- Two strands: after the first two tokens each is followed by one that is likely and one that is not.
local STRANDS = { [1] = { [2] = 0.5, [3] = 0.375 } }
for t = 2, 40 do STRANDS[t] = { [t + 2] = 0.9375, [50] = 0.03125 } end
STRANDS[50] = { [50] = 0.03125, [51] = 0.015625 }

function TestCast.test_with_costs_in_a_straight_line_it_is_eagle2()
  -- v(2) >= 0.25 > v(3) in each layer: with C1 = 0.25 / lambda the nodes that eagle2 expands are worth it, and no third
  local lambda, delta = 0.25, 0.5
  local pair = fake(STRANDS, nil, { vocab = 60, costs = line(1.0, 1.0, lambda + delta, lambda) })
  local params = { depth = false, rerank = false, allow_empty = false, C1 = 0.25 / lambda, top_k = 2, total = 9,
                   max_depth = 6 }
  local eagle2 = { depth = 6, top_k = 2, total = 9 }
  for _, aspect in ipairs { "tree", "drafted", "kept" } do
    lu.assertEquals(probe[aspect](pair, "cast", params), probe[aspect](pair, "eagle2", eagle2))
  end
end

function TestCast.test_with_costs_in_a_straight_line_the_threshold_of_the_theorem_selects_the_K_best()
  math.randomseed(5)
  local pair = fake(nil, nil, { vocab = 100, costs = line(1.0, 1.0, 0.75, 0.25) })
  local params = { depth = false, rerank = false, allow_empty = false, max_depth = 2 }
  for seed = 1, 10 do
    local options = { prompt = (" %d 7"):format(seed) }
    local by_depth, p = layers(probe.trace(pair, "cast", with(params, { C1 = 0.0 }), 1, options)[1].nodes)
    local ids = best(p, by_depth[1], 12)
    for K = 1, 4 do -- the scripted model's favourites; the rest tie
      local C1 = p[ids[K]] / 0.25 * (1 - probe.TINY)
      local _, _, drafted = layers(probe.trace(pair, "cast", with(params, { C1 = C1 }), 1, options)[1].nodes)
      local ties = 0
      while ids[K + ties + 1] and p[ids[K + ties + 1]] == p[ids[K]] do ties = ties + 1 end
      lu.assertEquals(count_of(drafted, by_depth[1]), K + ties)
    end
  end
end

function TestCast.test_drafts_a_further_layer_while_it_pays_by_what_layers_brought_lately()
  -- u of layer i is 0.5^i at c = 1/8: first 1 * 0.5^i >= 1/8 for i = 0..3; then the ratios are (1 + 0.5) / 2
  local draft, target = probe.circle(0.5)
  local pair = fake(draft, target, { costs = line(1.0, 0.01, 0.125, 0.125) })
  local params = { breadth = false, rerank = false, top_k = 1, C2 = 1.0 * (1 - probe.TINY) }
  local first, second = probe.tree(pair, "cast", params, 2):match "(.*)|(.*)"
  lu.assertEquals({ probe.count(first), probe.count(second) }, { 4, 3 })
  lu.assertEquals(probe.count(probe.tree(pair, "cast", with(params, { max_depth = 2 }))), 2)
  lu.assertEquals(probe.count(probe.tree(pair, "cast", with(params, { depth = false, max_depth = 9 }))), 9)
end

function TestCast.test_allow_empty_stops_drafting_where_it_does_not_pay()
  local draft, target = probe.circle(0.5)
  local expensive = fake(draft, target, { costs = line(1.0, 0.01, 2.0, 0.01) })
  lu.assertEquals(probe.tree(expensive, "cast", nil, 5), "||||")
  lu.assertNotEquals(probe.tree(expensive, "cast", { allow_empty = false }), "")
  local cheap = fake(draft, target, { costs = line(1.0, 0.01, 0.01, 0.01) })
  lu.assertNotEquals(probe.tree(cheap, "cast"), "")
end

function TestCast.test_allow_empty_tries_again()
  -- the target never agrees, and no layer is good enough at first; with the ratios forgotten drafting is tried again
  local pair = fake(probe.circle(0.25), { [1] = 1 }, { costs = line(1.0, 0.5, 0.5, 1e-6) })
  local drafted = probe.drafted(pair, "cast", { C = 1.5, R = 4 }, 80)
  lu.assertStrContains(drafted, "||")   -- it stops
  lu.assertStrContains(drafted, "|0")   -- and starts again
end

function TestCast.test_what_is_drafted_on_credit_is_verified_if_it_pays_at_all()
  -- C = 4 wants 0.8 for a row, and the guesses, which are right, say 0.6: what they are worth must be seen
  local draft, target = probe.circle(0.6)
  local pair, kept = fake(draft, target, { costs = line(1.0, 0.2, 0.1, 0.01) }), {}
  for i, iteration in ipairs((probe.trace(pair, "cast", { max_depth = 1, top_k = 1 }, 6, {}))) do
    kept[i] = 0
    for _, node in ipairs(iteration.nodes) do kept[i] = kept[i] + (node.kept and 1 or 0) end
  end
  lu.assertEquals(table.concat(kept), "010000") -- the first is free, and then the loss budget is in credit
end

function TestCast.test_presets_are_the_papers_settings()
  local pair = fake(nil, nil, { costs = random_costs() })
  local function params(preset) return select(2, probe.trace(pair, "cast", nil, 1, { preset = preset })).params end
  local batch = params "paper_batch8"
  lu.assertEquals({ batch.C, batch.max_depth, batch.top_k, batch.total, batch.allow_empty }, { 2.5, 9, 12, 72, false })
  lu.assertEquals({ params("paper_8b").C, params("paper").C, params("paper").max_depth }, { 3, 4, 13 })
  lu.assertFalse(select(2, probe.trace(pair, "caddtree", nil, 1, { preset = "paper" })).params.pause)
end

TestLossBudget = {}

-- The number of levels drafted in each iteration. The draft model is sure of a cycle of tokens; the target always says
-- 1 or, with `right`, follows the cycle, too.
local function levels(policy, params, costs, iterations, right)
  local draft, target = probe.circle(0.9)
  local pair = fake(draft, right and target or { [1] = 1 }, { context = 4000, costs = costs })
  local list = {}
  for i, iteration in ipairs((probe.trace(pair, policy, params, iterations, { tokens = 3000 }))) do
    list[i] = 0
    local _, _, drafted = layers(iteration.nodes)
    for _ in pairs(drafted) do list[i] = list[i] + 1 end
    if iteration.nodes[1].confidence then list[i] = list[i] + 1 end
  end
  return list
end

local CHAIN = { cast = { top_k = 1, max_depth = 3, C = 1.0 }, caddtree = { top_k = 1, depth = 3 } }
local PAPER = { cast = { allow_empty = false }, caddtree = { pause = false } }

function TestLossBudget.test_drafts_that_never_come_true_are_tried_with_one_level_and_then_seldom()
  for policy, params in pairs(CHAIN) do
    -- 0.2 and 0.05 of overhead for each level, 0.002 for each token that the draft model missed
    local list = levels(policy, params, line(1.0, 1e-6, 0.2, 0.002), 600)
    local took, tries, missed = 0, 0, 0
    for i, n in ipairs(list) do
      lu.assertTrue(n <= (i == 1 and 3 or 1), policy)
      took = took + n * 0.25 + (n > 0 and missed * 0.002 or 0)
      tries, missed = tries + (n > 0 and 1 or 0), n > 0 and 0 or missed + 1
    end
    lu.assertTrue(tries >= 30, policy) -- the opening credit is used, and 1 % of the tokens
    lu.assertTrue(took > 10 and took <= 10 + 600 * 0.01, policy .. took)
    lu.assertEquals(list[#list - 1] + list[#list], 0, policy)
  end
end

function TestLossBudget.test_the_papers_rule_always_drafts()
  for policy, params in pairs(CHAIN) do
    for i, n in ipairs(levels(policy, with(params, PAPER[policy]), line(1.0, 1e-6, 0.2, 0.002), 100)) do
      lu.assertTrue(n > 0, policy .. i)
    end
  end
end

function TestLossBudget.test_drafts_that_come_true_are_never_paused()
  for policy, params in pairs(CHAIN) do
    local costs, always = line(1.0, 1e-6, 0.2, 0.002), with(params, PAPER[policy])
    lu.assertEquals(levels(policy, params, costs, 100, true), levels(policy, always, costs, 100, true))
  end
end

function TestLossBudget.test_a_draft_model_too_expensive_for_the_credit_is_never_asked()
  local function first(draft) return levels("cast", { C = 0.1 }, line(1.0, 1e-6, draft, 1e-6), 1, true)[1] end
  lu.assertEquals({ first(9.96) > 0, first(9.93) > 0 }, { false, true })
end

TestRate = {}

local function sizes(shapes)
  local list = {}
  for shape in (shapes .. "|"):gmatch "([^|]*)|" do list[#list + 1] = probe.count(shape) end
  return list
end

function TestRate.test_drafts_nothing_where_drafting_costs_more_than_it_brings()
  local draft, target = probe.circle()
  lu.assertEquals(probe.tree(fake(draft, target, { costs = line(1.0, 0.01, 2.0, 0.01) }), "rate", nil, 4), "|||")
end

function TestRate.test_counts_its_own_time()
  -- a draft pass costs nothing compared with target passes of 0.001 ms and of 1 ms
  local draft, target = probe.circle()
  local function first(ms)
    local pair = fake(draft, target, { costs = line(ms, ms / 100, ms / 1000, ms / 1000) })
    return sizes(probe.tree(pair, "rate", nil, 4))[1]
  end
  lu.assertEquals(first(0.001), 0)
  lu.assertTrue(first(1.0) > 0)
end

function TestRate.test_drafts_farther_the_more_was_accepted()
  local draft, target = probe.circle()
  local pair = fake(draft, target, { costs = line(1.0, 0.01, 0.01, 0.01) })
  local n = sizes(probe.tree(pair, "rate", nil, 2))
  lu.assertEquals({ n[1], n[2] }, { 2, 4 })
end

function TestRate.test_drafts_far_where_all_is_certain_and_cheap()
  local draft, target = probe.circle()
  local pair = fake(draft, target, { costs = line(1.0, 0.01, 0.01, 0.01) })
  local result = assert(pair:generate { policy = "rate", prompt = " 1", tokens = 300 })
  lu.assertTrue(result.stats.tokens_per_iteration > 12)
  lu.assertTrue(result.stats.tree_nodes_mean <= result.stats.tree_depth_mean) -- a chain
end

function TestRate.test_gives_a_node_more_children_the_less_a_row_costs()
  local draft, target = { [1] = { [2] = 0.5, [3] = 0.25, [4] = 0.125 } }, { [1] = 3 }
  local function children(row)
    local shape = probe.tree(fake(draft, target, { costs = line(1.0, row / 3, 0.25 / 3, 2.0 / 3) }), "rate")
    return select(2, shape:gsub("0>", ""))
  end
  -- thirds, since a first tree is to bring three tokens a pass
  lu.assertEquals({ children(0.35), children(0.2), children(0.05) }, { 1, 2, 3 })
end

-- 1, 2, .. 199: a text that never repeats, and a draft model that guesses something else, with probability p.
local function straight(p)
  local draft, target = {}, {}
  for t = 1, 197 do draft[t], target[t] = { [t + 2] = p }, t + 1 end
  return draft, target
end

function TestRate.test_learns_what_becomes_of_the_draft_models_guesses()
  -- guesses of a half are right up to 25; from there every one is wrong. They stop long before the gain is lost
  local draft, target = straight(0.5)
  for t = 1, 25 do draft[t] = { [t + 1] = 0.5 } end
  local pair = fake(draft, target, { vocab = 200, costs = line(1.0, 0.2, 0.2, 0.05) })
  local n = sizes(probe.tree(pair, "rate", nil, 170))
  local late = 0
  for i = 31, 170 do late = late + n[i] end
  lu.assertTrue(n[5] > 5)
  lu.assertEquals(late, 0)
end

-- By its formula, before anything is known: a first pass is to bring what the best chain of guesses brings that are
-- each right with probability 0.8, less its time at 3 tokens a pass; there are a third as many as tokens that may still
-- come; 100 tokens take 0.1 ms and 0.05 for each but the first to read.
function TestRate.test_reads_a_long_prompt_where_the_tokens_that_may_come_repay_it()
  local draft, target = straight(1.0)
  local words = {}
  for t = 1, 101 do words[t] = " " .. t end
  local pair = fake(draft, target, { vocab = 200, costs = line(1.0, 0.01, 0.1, 0.05) })
  local function drafts(tokens, n)
    pair:forget()
    local list = probe.trace(pair, "rate", nil, 1, { prompt = table.concat(words, "", 1, n or 101), tokens = tokens })
    return #list[1].nodes > 1
  end
  local R = 3 / 1.007
  local brings, accepted = 0, 0
  for depth = 1, 8 do -- 0.003 of a row and of a draft pass are overhead
    accepted = accepted + 0.8 ^ depth
    brings = math.max(brings, accepted - depth * 0.013 - (depth - 1) * 0.103)
  end
  local gain = brings - R * 0.103
  local least = math.ceil(R * (0.1 + 99 * 0.05) * 3 / gain)
  lu.assertEquals({ drafts(least - 1), drafts(least) }, { false, true })
  lu.assertTrue(drafts(least - 1, 90) and drafts(9, 1)) -- a shorter one; one without anything to read
end

-- A draft pass takes as long for one sequence as for all; a long prompt is not worth reading.
function TestRate.test_asks_again_only_if_others_share_the_pass()
  local draft, target = straight(1.0)
  for t = 1, 197 do draft[t] = { [t + 1] = 1.0 } end
  local costs = { contexts = { 128 }, rows = { 1, 9, 100 }, target = { { 1.0, 1.01, 1.1 } },
                  draft = { { 0.2, 0.20001, 60.0 } } }
  local pair = fake(draft, target, { vocab = 200, costs = costs })
  local long = {}
  for t = 1, 101 do long[t] = " " .. t end
  local function drafted(others)
    local list = { " 1" }
    for i = 2, 6 do list[i] = others end
    local options = { prompts = list, slots = 6, policy = "rate", tokens = 40, ignore_eos = true }
    local results = assert(pair:generate_batch(options))
    return results[1].stats.iterations, results[2].stats.drafted > 0
  end
  local together, all = drafted " 2"
  local alone, some = drafted(table.concat(long))
  lu.assertEquals({ all, some }, { true, false })
  lu.assertTrue(together < 25 and alone > 35, together .. ", " .. alone)
end

function TestRate.test_copies_what_followed_the_last_three_tokens_before_and_needs_no_draft_pass_for_it()
  local _, target = probe.circle()
  local pair = fake(nil, target, { costs = line(1.0, 0.5, 50.0, 0.01) })
  local shapes = probe.tree(pair, "rate", nil, 24)
  lu.assertEquals(shapes:sub(1, 22), ("|"):rep(22)) -- 1 .. 20 1 2, then 3: its last three tokens occurred earlier
  lu.assertStrMatches(shapes:sub(23), "0>4|0>6.*")
  lu.assertEquals(probe.drafted(pair, "rate", nil, 24), ("|"):rep(23))
end

function TestRate.test_copies_after_fewer_tokens_where_there_is_no_draft_model()
  local _, target = probe.circle()
  local costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 1.0, 1.25 } } }
  local pair = fake(nil, target, { draft = false, costs = costs })
  local shapes = probe.tree(pair, "rate", nil, 22)
  lu.assertEquals(shapes:sub(1, 20), ("|"):rep(20)) -- 1 .. 20, then 1, which occurred earlier
  lu.assertStrMatches(shapes:sub(21), "0>2.*")
end

function TestRate.test_learns_which_copies_come_true_where_the_draft_model_says_something_else()
  -- after x 1 2 3 comes y, x another one each time, y the same one twice; the draft model knows all but the 3
  local draft, target = {}, {}
  for k = 1, 40 do
    local x, y = 10 + k, 50 + (k + 1) // 2
    local block = { ["" .. x] = 1, ["1"] = 2, ["2"] = 3, [x .. " 1 2 3"] = y, [x .. " 1 2 3 " .. y] = x + 1 }
    for context, token in pairs(block) do
      draft[context], target[context] = { [token] = token == 3 and 0.01 or 0.9 }, { [token] = 1.0 }
    end
  end
  local pair = assert(require "dt".fake { vocab = 100, draft = draft, target = target,
                                          costs = line(1.0, 0.02, 0.02, 0.01) })
  local options = { policy = "rate", prompt = " 11", tokens = 180, ignore_eos = true }
  local list = probe.trace(pair, "rate", nil, assert(pair:generate(options)).stats.iterations, options)
  local function copies(first, last) -- which are not the draft model's word: second children
    local n = 0
    for i = first, last do
      local children = {}
      for _, node in ipairs(list[i].nodes) do
        if node.id > 0 and children[node.parent] then n = n + 1 end
        children[node.parent or -1] = true
      end
    end
    return n
  end
  lu.assertTrue(copies(1, #list // 2) > 0)
  lu.assertEquals(copies(#list // 2 + 1, #list), 0)
end

function TestRate.test_a_copy_goes_on_with_what_it_copied()
  -- 1 1 1 ..: the earlier passage ends one token before the end
  local pair = fake(nil, { [1] = 1 }, { costs = line(1.0, 0.01, 50.0, 0.01) })
  local n = sizes(probe.tree(pair, "rate", nil, 5))
  lu.assertEquals(n[1], 0)
  lu.assertTrue(n[2] > 3 and n[5] > 3)
end

-- Milliseconds of a run by the costs of its pair, policy overhead left out, in target passes of one row.
local function passes(pair, costs, options)
  local ms, all = 0, assert(pair:generate(options)).stats.iterations
  for _, iteration in ipairs(probe.trace(pair, "rate", nil, all, options)) do
    local rows, depth, of_level = 1, { [0] = 0 }, {}
    for _, node in ipairs(iteration.nodes) do
      depth[node.id] = node.parent and depth[node.parent] + 1 or 0
      rows = rows + (node.kept and 1 or 0)
      local d = depth[node.id]
      if node.confidence then of_level[d] = (of_level[d] or 0) + 1 end
    end
    local function cost(list, n) return list[1][1] + (n - 1) * (list[1][2] - list[1][1]) end
    ms = ms + cost(costs.target, rows)
    for _, n in pairs(of_level) do ms = ms + cost(costs.draft, n) end
  end
  return ms / costs.target[1][1]
end

function TestRate.test_loses_no_more_than_its_loss_budget_allows()
  -- guesses are never right, however sure; of copies every third is
  local wrong, target = straight(0.95)
  local loops, most = {}, 195 + 10 -- 5 % of 200 tokens; a table's loss budget begins with as much
  for t = 1, 197 do loops[tostring(t)] = { [t % 7 + (t % 3 == 0 and t // 9 or 0) + 1] = 1.0 } end
  for row, draft in pairs { [0.01] = 0.05, [0.05] = 0.3, [0.2] = 0.02, [0.4] = 0.5 } do
    local costs = line(1.0, row, draft, 0.01)
    local options = { policy = "rate", prompt = " 1", tokens = 195, ignore_eos = true }
    local took = passes(fake(wrong, target, { vocab = 200, costs = costs }), costs, options)
    lu.assertTrue(took <= most)
    lu.assertEquals(took > 195, draft < 0.5) -- where it tries
    local pair <close> = assert(require "dt".fake { vocab = 200, target = loops, costs = costs })
    lu.assertTrue(passes(pair, costs, options) <= most)
  end
end

function TestRate.test_what_wrong_guesses_of_the_draft_model_lost_copies_win_back()
  -- 1 .. 60, of which the draft model, however sure, guesses nothing, then 61 .. 80 again and again
  local wrong, target = straight(0.95)
  target[80] = 61
  local costs = line(10.0, 1.0, 1.0, 0.1) -- compared with which overhead is negligible
  local options = { policy = "rate", prompt = " 1", tokens = 200, ignore_eos = true }
  local took = passes(fake(wrong, target, { vocab = 200, costs = costs }), costs, options)
  lu.assertTrue(took < 140, took)
end

-- Generates a text with these costs in ms of passes and of each further row. Returns the numbers of the iterations in
-- which the policy was called, the number of the first one with a copy, and the rows of copies.
local function calls(target, tokens, ms, row)
  local pair <close> = assert(require "dt".fake { vocab = 100, context = 600, target = target,
                                                  costs = line(ms, row, 50 * ms, row) })
  local options = { policy = "rate", prompt = " 4", tokens = tokens, ignore_eos = true }
  local called, copied, rows = {}, nil, 0
  local all = assert(pair:generate(options)).stats.iterations
  for i, iteration in ipairs(probe.trace(pair, "rate", nil, all, options)) do
    if iteration.ms.policy > 0 then called[#called + 1] = i end -- a paused one takes no time
    if not copied and #iteration.nodes > 1 then copied = i end
    for _, node in ipairs(iteration.nodes) do rows = rows + (node.kept and 1 or 0) end
  end
  return called, copied, rows
end

function TestRate.test_pauses_until_there_is_a_copy()
  local target = {} -- 4 .. 98, then 4 .. 98 again: after 4 there is a copy
  for t = 4, 98 do target[tostring(t)] = { [t < 98 and t + 1 or 4] = 1.0 } end
  for _, ms in ipairs { 1.0, 0.1, 0.02 } do
    local called, copied = calls(target, 150, ms, ms / 100)
    lu.assertEquals(copied, 95 + 1)
    lu.assertEquals({ called[1], called[2] }, { 1, copied })
  end
end

-- 4 1 5 1 6 ..: no copy after 1 is right.
local function never_right()
  local target = {}
  for t = 4, 98 do
    target[tostring(t)] = { [1] = 1.0 }
    target[t .. " 1"] = { [t + 1] = 1.0 }
  end
  return target
end

function TestRate.test_resumes_for_copies_of_a_kind_that_is_worth_its_row()
  local called = calls(never_right(), 120, 1.0, 0.25) -- after wrong ones of one token such ones are worth none
  lu.assertEquals(called, { 1, 4, 6 })
end

function TestRate.test_its_own_time_counts_as_a_loss()
  local target = never_right()
  for _, ms in ipairs { 1.0, 0.1, 0.02 } do
    local called, _, rows = calls(target, 185, ms, ms / 100)
    -- by a table without cache misses
    local overhead, resume, row, saved = 0.007, 0.0155, ms / 100 + 0.003, 0.25 * 0.0035
    local lost, last = 0, -1
    for _, i in ipairs(called) do lost, last = lost + overhead + (i > last + 1 and resume or 0), i end
    lost = lost + rows * row
    local may = 10 * ms + 185 * (0.01 * ms + saved)
    lu.assertTrue(lost <= may, ("%g ms: %g of %g"):format(ms, lost, may))
  end
end

function TestRate.test_learns_what_becomes_of_copies()
  -- after 1 comes something new each time
  local pair = assert(require "dt".fake { vocab = 100, target = never_right(), costs = line(1.0, 0.2, 50.0, 0.01) })
  local n = sizes(probe.tree(pair, "rate", nil, 100, { prompt = " 4" }))
  local early, late = 0, 0
  for i = 1, 50 do early, late = early + n[i], late + n[50 + i] end
  lu.assertTrue(early > 0)
  lu.assertEquals(late, 0)
end

function TestRate.test_learns_of_copies_that_are_not_worth_a_row_too()
  -- 1 .. 20 again and again: a copy is worth a row if more than 92 % of such copies were right, which is never expected
  local _, target = probe.circle()
  local pair = fake(nil, target, { costs = line(10.0, 9.2, 500.0, 0.01) })
  local n = sizes(probe.tree(pair, "rate", nil, 60))
  local sum = { 0, 0 }
  for i, nodes in ipairs(n) do sum[i <= 30 and 1 or 2] = sum[i <= 30 and 1 or 2] + nodes end
  lu.assertEquals(sum[1], 0)
  lu.assertTrue(sum[2] > 20, sum[2])
end

function TestRate.test_copies_from_a_corpus_too_where_files_are_given()
  -- 1 .. 20: nothing of it stood in the text before
  local _, target = probe.circle()
  local path, ids = os.tmpname(), {}
  for t = 1, 20 do ids[t] = " " .. t end
  local file <close> = assert(io.open(path, "w"))
  file:write(table.concat(ids))
  file:close()
  local more = { draft = false, costs = line(1.0, 0.1, 1.0, 1.0) }
  lu.assertEquals(probe.tree(fake(nil, target, more), "rate", nil, 2), "|")
  more.corpus = { path }
  lu.assertStrMatches(probe.tree(fake(nil, target, more), "rate", nil, 2), "0>2.*|.+")
  local _, result = probe.trace(fake(nil, target, more), "rate", nil, 1, { tokens = 12 })
  lu.assertEquals(result.corpus.tokens, 21) -- and the text's end
  lu.assertTrue(result.stats.tags.corpus.accepted > 5)
  os.remove(path)
end

-- Two sources of the policy's own: `wrong` is estimated to be better, but `right` is better.
local SOURCES = [[
local policy = require "dt.policy"
local Two = policy.define { name = "two", uses = { draft = false } }
local function source(tag, q, step)
  local function follow(_, tree, u) return (tree:token(u) - 1 + step) % 20 + 1, 1 end
  return { tag = tag, estimates = { q }, find = function() end, follow = follow }
end
function Two:init() self.sources = policy.sources { source("wrong", 0.9, 2), source("right", 0.5, 1) } end
function Two:draft(tree)
  self.sources:find(tree.seq)
  local u = 0
  for _ = 1, math.min(3, tree:depth_room()) do
    local token, q = self.sources:next(tree)
    assert(token and q > 0 and q < 1)
    u = self.sources:add(tree, u)
  end
end
function Two:observe(tree, out) self.sources:observe(tree, out) end
return Two]]

-- Ten tokens are forced, then one of two comes.
function TestRate.test_guesses_what_a_grammar_forces()
  local _, target = straight(1)
  local costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 1.0, 1.25 } } }
  local pair = fake(nil, target, { vocab = 200, draft = false, costs = costs, eos = 0 })
  local rules = 'root ::= (" 4 5 6 7 8 9 10 11 12 13" (" 14" | " 20"))'
  local result = assert(pair:generate { policy = "rate", prompt = " 3", tokens = 11, grammar = rules })
  lu.assertEquals(result.tokens, { 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 })
  lu.assertTrue(result.stats.iterations <= 4)
  lu.assertTrue(result.stats.accepted >= 8)
end

function TestRate.test_of_several_sources_the_one_that_comes_true_is_taken()
  local _, target = probe.circle()
  local shapes = probe.tree(fake(nil, target, { draft = false }), "two.lua", nil, 4, { source = SOURCES })
  -- 0.9 of 2, then of 3 the same 1.8: 0.6, and 0.45 after another one
  lu.assertEquals(shapes, "0>3 1>5 2>7|0>4 1>6 2>8|0>4 1>5 2>6|0>8 1>9 2>10")
end

function TestRate.test_a_run_repeats_given_the_same_table()
  local pair = fake(nil, nil, { vocab = 100, costs = line(1.0, 0.05, 0.1, 0.02) })
  lu.assertEquals(probe.tree(pair, "rate", nil, 20), probe.tree(pair, "rate", nil, 20))
end

function TestRate.test_takes_a_text_with_more_runs_than_a_table_of_the_box_has_keys()
  local pair = fake(nil, nil, { vocab = 3000, context = 40100, costs = line(1.0, 0.5, 0.25, 0.25) })
  local result = assert(pair:generate { policy = "rate", prompt = probe.long_text(40000, 3000), tokens = 4 })
  lu.assertEquals(#result.tokens, 4)
end

TestExperts = {}

-- A target whose rows take 8 of 128 experts in each of two layers, few of them those of the row before. Its table was
-- measured with rows that all took the same 16; one more takes `ms`.
local function with_experts(draft, target, ms)
  local costs = { contexts = { 128 }, rows = { 1, 64 }, target = { { 1.0, 1.5 } }, draft = { { 0.02, 0.03 } },
                  experts = { 16, 16 }, expert = { ms, ms } }
  return fake(draft, target, { costs = costs, experts = { layers = 2, of = 128, chosen = 8, kept = 0.1 } })
end

function TestExperts.test_where_a_row_wakes_others_trees_are_smaller_and_texts_the_same()
  local draft, target = probe.circle()
  for t = 1, 20 do draft[t] = { [t % 20 + 1] = 0.6, [t % 20 + 21] = 0.2 } end
  for policy, params in pairs { rate = {}, caddtree = {}, cast = { C = 1.0 } } do
    local options = { policy = policy, params = params, prompt = " 1", tokens = 120, ignore_eos = true }
    local found, rows = {}, {}
    for i, ms in ipairs { 0, 0.02, 1.0 } do
      local pair <close> = with_experts(draft, target, ms)
      found[i] = assert(pair:generate(options))
      local list = probe.trace(with_experts(draft, target, ms), policy, params, found[i].stats.iterations, options)
      local late = 0
      for k = #list // 2 + 1, #list do
        for _, node in ipairs(list[k].nodes) do late = late + (node.kept and 1 or 0) end
      end
      rows[i] = late / (#list - #list // 2)
      local plain = assert(pair:generate(probe.with(options, { policy = "ar", params = {} })))
      lu.assertEquals(found[i].tokens, plain.tokens)
      lu.assertEquals(plain.stats.experts_per_pass, 16)
    end
    lu.assertTrue(rows[1] > 2 * rows[2] and rows[2] > 1)
    lu.assertEquals(rows[3], 0) -- no guess is worth its experts
  end
end

os.exit(lu.LuaUnit.run())
