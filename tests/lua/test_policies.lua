-- linear, fixed_tree and dynatree, node for node, on scripted pairs: `dtrun run tests/lua/test_policies.lua`.
local lu = require "luaunit"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
local ROOT, TINY = probe.ROOT, probe.TINY
local fake, circle, tree, drafted = probe.fake, probe.circle, probe.tree, probe.drafted
local probabilities, count, with = probe.probabilities, probe.count, probe.with

-- After 1 the draft model is half sure of 2; after 2 it is sure of 5, after 3 of nothing.
local UNSURE = {
  [1] = { [2] = 0.5, [3] = 0.25, [4] = 0.125 },
  [2] = { [5] = 0.875, [6] = 0.0625 },
  [3] = { [7] = 0.25, [8] = 0.1875, [9] = 0.125 },
  [4] = { [10] = 0.5, [11] = 0.25, [12] = 0.125 },
}

TestLinear = {}

function TestLinear.test_is_a_chain_of_the_likeliest_tokens()
  lu.assertEquals(tree(fake(UNSURE), "linear", { K = 2 }), "0>2 1>5")
  lu.assertEquals(tree(fake(UNSURE), "linear", { K = 1 }), "0>2")
end

function TestLinear.test_never_drafts_where_no_token_is_wanted()
  local draft, target = circle()
  lu.assertEquals(drafted(fake(draft, target), "linear", { K = 8 }, 1, { tokens = 3 }), "0 1")
  lu.assertEquals(tree(fake(draft, target), "linear", { K = 8 }, 1, { tokens = 1 }), "")
  lu.assertEquals(drafted(fake(draft, target), "linear", { K = 8 }, 1, { tokens = 1 }), "")
end

TestFixedTree = {}

function TestFixedTree.test_gives_every_node_above_depth_D_its_B_children()
  lu.assertEquals(tree(fake(UNSURE), "fixed_tree", { D = 1, B = 2, tau = 0.0 }), "0>2 0>3 1>5 1>6 2>7 2>8")
end

function TestFixedTree.test_counts_depth_from_the_first_drafted_token()
  local draft = circle()
  for D = 1, 6 do lu.assertEquals(count(tree(fake(draft), "fixed_tree", { D = D, B = 1, tau = 0.0 })), D + 1) end
end

function TestFixedTree.test_expands_a_node_whose_probability_is_tau_and_none_below()
  local pair = fake(UNSURE)
  local p = probabilities(pair, "fixed_tree", { D = 1, B = 2, tau = 1.0 })
  local function at(tau) return tree(pair, "fixed_tree", { D = 1, B = 2, tau = tau }) end
  lu.assertEquals(at(p[2]), "0>2 0>3 1>5 1>6 2>7 2>8")
  lu.assertEquals(at(p[2] * (1 + TINY)), "0>2 0>3 1>5 1>6")
  lu.assertEquals(at(p[1]), "0>2 0>3 1>5 1>6")
  lu.assertEquals(at(p[1] * (1 + TINY)), "0>2 0>3")
end

function TestFixedTree.test_is_cut_in_mid_level_by_the_budget()
  local bushy = { D = 1, B = 3, tau = 0.0 }
  local whole = "0>2 0>3 0>4 1>5 1>6 "
  for N_max, shape in pairs { [1] = "0>2", [2] = "0>2 0>3", [3] = "0>2 0>3 0>4", [4] = "0>2 0>3 0>4 1>5" } do
    lu.assertEquals(tree(fake(UNSURE), "fixed_tree", with(bushy, { N_max = N_max })), shape)
  end
  lu.assertStrContains(tree(fake(UNSURE), "fixed_tree", with(bushy, { N_max = 8 })), whole)
  lu.assertEquals(count(tree(fake(UNSURE), "fixed_tree", with(bushy, { N_max = 8 }))), 8)
end

function TestFixedTree.test_drafts_only_nodes_that_can_still_get_a_child()
  local bushy = { D = 1, B = 3, tau = 0.0 }
  for N_max, nodes in pairs { [1] = "0", [3] = "0", [4] = "0 1", [6] = "0 1", [7] = "0 1 2", [10] = "0 1 2 3" } do
    lu.assertEquals(drafted(fake(UNSURE), "fixed_tree", with(bushy, { N_max = N_max })), nodes)
  end
end

function TestFixedTree.test_root_branch_is_the_number_of_the_roots_children()
  lu.assertEquals(tree(fake(UNSURE), "fixed_tree", { D = 1, B = 2, tau = 0.0, root_branch = 1 }), "0>2 1>5 1>6")
  lu.assertEquals(tree(fake(UNSURE), "fixed_tree", { D = 1, B = 1, tau = 0.4, root_branch = 3 }), "0>2 0>3 0>4 1>5")
end

function TestFixedTree.test_is_no_deeper_than_the_text_wanted()
  local draft, target = circle()
  for tokens = 1, 5 do
    local nodes = count(tree(fake(draft, target), "fixed_tree", { B = 1 }, 1, { tokens = tokens }))
    lu.assertEquals(nodes, tokens - 1)
  end
  lu.assertEquals(drafted(fake(draft, target), "fixed_tree", { B = 1 }, 1, { tokens = 3 }), "0 1")
end

TestBreadth = {}

-- Only the root is expanded, c(root) = 0.5.
local ROOT_ONLY = { depth = false, history = false, tau = 1.0 }

function TestBreadth.test_B_min_from_tau_h_on_B_max_below_tau_l_else_B_mid()
  local one, two, three = "0>2", "0>2 0>3", "0>2 0>3 0>4"
  local pair = fake(UNSURE)
  local function at(tau_h, tau_l) return tree(pair, "dynatree", with(ROOT_ONLY, { tau_h = tau_h, tau_l = tau_l })) end
  lu.assertEquals(at(0.25, 0.125), one)
  lu.assertEquals(at(0.5, 0.25), one)          -- c == tau_h
  lu.assertEquals(at(0.5 + TINY, 0.25), two)   -- c just below tau_h
  lu.assertEquals(at(0.75, 0.5), two)          -- c == tau_l
  lu.assertEquals(at(0.75, 0.5 + TINY), three) -- c just below tau_l
  lu.assertEquals(at(1.0, 1.0), three)
end

function TestBreadth.test_goes_by_each_nodes_own_confidence()
  local params = { depth = false, history = false, D0 = 1, tau = 0.0, tau_h = 0.875, tau_l = 0.375 }
  lu.assertEquals(tree(fake(UNSURE), "dynatree", params), "0>2 0>3 1>5 2>7 2>8 2>9")
end

function TestBreadth.test_B_min_B_mid_B_max_are_parameters()
  local pair, B = fake(UNSURE), { B_min = 2, B_mid = 3, B_max = 4 }
  local function at(tau_h, tau_l)
    return count(tree(pair, "dynatree", with(with(ROOT_ONLY, B), { tau_h = tau_h, tau_l = tau_l })))
  end
  lu.assertEquals(at(0.5, 0.25), 2)
  lu.assertEquals(at(0.75, 0.25), 3)
  lu.assertEquals(at(0.75, 0.75), 4)
end

function TestBreadth.test_off_is_B_mid_everywhere()
  local params = { breadth = false, depth = false, history = false, D0 = 1, tau = 0.0, tau_h = 0.5, tau_l = 0.375 }
  lu.assertEquals(tree(fake(UNSURE), "dynatree", params), "0>2 0>3 1>5 1>6 2>7 2>8")
end

function TestBreadth.test_root_branch_replaces_the_rule_at_the_root_only()
  local params = with(ROOT_ONLY, { tau_h = 0.5 })
  for b, shape in pairs { "0>2", "0>2 0>3", "0>2 0>3 0>4" } do
    lu.assertEquals(tree(fake(UNSURE), "dynatree", with(params, { root_branch = b })), shape)
  end
  params = { depth = false, history = false, D0 = 1, tau = 0.0, tau_h = 0.875, root_branch = 3 }
  lu.assertEquals(tree(fake(UNSURE), "dynatree", params), "0>2 0>3 0>4 1>5 2>7 2>8 2>9 3>10 3>11")
end

TestDepth = {}

local CHAIN = { breadth = false, history = false, B_min = 1, B_mid = 1, tau = 0.0, rho_stop = 0.0 }

local function depth_of(pair, params) return count(tree(pair, "dynatree", with(CHAIN, params))) end

function TestDepth.test_no_node_at_D_max_is_expanded()
  local pair = fake((circle()))
  for D_max = 2, 9 do lu.assertEquals(depth_of(pair, { D0 = 1, D_max = D_max, rho_deep = 0.5 }), D_max + 1) end
end

function TestDepth.test_from_D0_on_only_nodes_above_rho_deep()
  local certain, half = fake((circle())), fake((circle(0.5)))
  for D0 = 1, 5 do
    lu.assertEquals(depth_of(certain, { D0 = D0, D_max = 8, rho_deep = 1.0 }), D0 + 1) -- p == rho_deep is not above it
    lu.assertEquals(depth_of(certain, { D0 = D0, D_max = 8, rho_deep = 1.0 - TINY }), 9)
    lu.assertEquals(depth_of(half, { D0 = D0, D_max = 8, rho_deep = 0.9 }), D0 + 1)
  end
end

local function chain_probabilities(pair)
  local p = probabilities(pair, "dynatree", with(CHAIN, { D0 = 7, D_max = 8, rho_deep = 0.0 }))
  lu.assertEquals(#p, 9)
  return p
end

function TestDepth.test_rho_deep_itself_is_not_deep_and_just_below_it_is()
  local pair = fake((circle(0.5)))
  local p = chain_probabilities(pair)
  for i = 2, 8 do -- node i has d = i - 1
    lu.assertEquals(depth_of(pair, { D0 = 1, D_max = 8, rho_deep = p[i] }), i)
    lu.assertEquals(depth_of(pair, { D0 = 1, D_max = 8, rho_deep = p[i] * (1 - TINY) }), i + 1)
  end
end

function TestDepth.test_rho_stop_itself_is_expanded_and_just_below_it_is_not()
  local pair = fake((circle(0.5)))
  local p = chain_probabilities(pair)
  for i = 1, 7 do
    local params = { D0 = 7, D_max = 8, rho_deep = 1.0 }
    lu.assertEquals(depth_of(pair, with(params, { rho_stop = p[i] })), i + 1)
    lu.assertEquals(depth_of(pair, with(params, { rho_stop = p[i] * (1 + TINY) })), i)
  end
end

function TestDepth.test_off_is_D0_alone()
  for D0 = 1, 9 do
    local params = { depth = false, D0 = D0, rho_stop = 0.9, rho_deep = 0.9 }
    lu.assertEquals(depth_of(fake((circle(0.5))), params), D0 + 1)
  end
end

function TestDepth.test_tau_prunes_whether_depth_is_on_or_off()
  local pair = fake((circle(0.5)))
  local p = chain_probabilities(pair)
  for _, depth in ipairs { true, false } do
    local params = { depth = depth, D0 = 7, D_max = 8, rho_deep = 1.0 }
    for i = 1, 7 do
      lu.assertEquals(depth_of(pair, with(params, { tau = p[i] })), i + 1)
      lu.assertEquals(depth_of(pair, with(params, { tau = p[i] * (1 + TINY) })), i)
    end
  end
end

TestBudget = {}

local BUSHY = { depth = false, history = false, D0 = 1, tau = 0.0, tau_h = 0.75, tau_l = 0.25, B_mid = 3 }

function TestBudget.test_cuts_in_mid_level()
  local whole = "0>2 0>3 0>4 1>5 2>7 2>8 2>9 3>10 3>11 3>12"
  lu.assertEquals(tree(fake(UNSURE), "dynatree", BUSHY), whole)
  local shape = {}
  for node in whole:gmatch "%S+" do
    shape[#shape + 1] = node
    lu.assertEquals(tree(fake(UNSURE), "dynatree", with(BUSHY, { N_max = #shape })), table.concat(shape, " "))
  end
end

function TestBudget.test_drafts_no_more_nodes_than_can_still_get_a_child()
  for N_max, nodes in pairs { [1] = "0", [3] = "0", [4] = "0 1", [5] = "0 1 2", [6] = "0 1 2 3" } do
    lu.assertEquals(drafted(fake(UNSURE), "dynatree", with(BUSHY, { N_max = N_max })), nodes)
  end
  local fixed = with(BUSHY, { breadth = false })
  lu.assertEquals(drafted(fake(UNSURE), "dynatree", with(fixed, { N_max = 6 })), "0 1")
end

function TestBudget.test_ends_with_the_text_wanted()
  local draft, target = circle()
  for tokens = 1, 5 do
    local request = { tokens = tokens }
    lu.assertEquals(count(tree(fake(draft, target), "dynatree", CHAIN, 1, request)), tokens - 1)
  end
  lu.assertEquals(drafted(fake(draft, target), "dynatree", CHAIN, 1, { tokens = 3 }), "0 1")
end

function TestBudget.test_drafts_nothing_that_is_not_expanded()
  local params = { breadth = false, history = false, D0 = 1, D_max = 2, rho_stop = 0.4, rho_deep = 0.5, tau = 0.0 }
  lu.assertEquals(tree(fake(UNSURE), "dynatree", params), "0>2 0>3 1>5 1>6")
  lu.assertEquals(drafted(fake(UNSURE), "dynatree", params), "0 1")
end

TestOff = {}

function TestOff.test_all_switches_off_it_grows_fixed_tree_node_for_node()
  math.randomseed(7)
  local pair = fake(nil, nil, { vocab = 500 })
  for _ = 1, 60 do
    local D, B, N_max = math.random(1, 7), math.random(1, 4), math.random(1, 80)
    local tau = ({ 0.0, 0.01, 0.05, 0.1, 0.3 })[math.random(5)]
    local root_branch = ({ false, 1, 5 })[math.random(3)] or nil
    local prompt = {}
    for i = 1, math.random(1, 9) do prompt[i] = (" %d"):format(math.random(0, 499)) end
    local options = { prompt = table.concat(prompt), tokens = 60 }
    local params = { D = D, B = B, tau = tau, N_max = N_max, root_branch = root_branch }
    local fixed = tree(pair, "fixed_tree", params, 8, options)
    local dynamic = tree(pair, "dynatree", {
      breadth = false, depth = false, history = false, D0 = D, B_min = 1, B_mid = B, B_max = math.max(B, 3), tau = tau,
      N_max = N_max, root_branch = root_branch,
    }, 8, options)
    lu.assertEquals(dynamic, fixed)
  end
end

TestHistory = {}

-- Trees of two nodes in a row. After 1 both are accepted, after 4, to which that leads, none: acceptance 1, 0, 1, 0, ..
local ALTERNATING = { [1] = { [2] = 1.0 }, [2] = { [3] = 1.0 }, [4] = { [5] = 1.0 }, [5] = { [6] = 1.0 } }
local ALTERNATING_TARGET = { [1] = 2, [2] = 3, [3] = 4, [4] = 1 }
local NEVER = { [1] = 1 } -- a target that agrees with no circle
local TWO = { breadth = false, B_min = 1, B_mid = 1, N_max = 2, a_star = 0.5, eta_h = 0.125, tau_h = 0.75 }

local function states(params, iterations, draft, target, options)
  local pair = fake(draft or ALTERNATING, target or ALTERNATING_TARGET, options)
  local state = [[("%.15g %.15g %.15g"):format(self.D0, self.tau_h, self.rho_deep)]]
  local list = probe.states(state, pair, "dynatree", with(TWO, params), iterations)
  for i, text in ipairs(list) do
    local D0, tau_h, rho_deep = text:match "(%S+) (%S+) (%S+)"
    list[i] = { D0 = tonumber(D0), tau_h = tonumber(tau_h), rho_deep = tonumber(rho_deep) }
  end
  return list
end

local function values(name, ...)
  local list = {}
  for i, state in ipairs(states(...)) do list[i] = state[name] end
  return list
end

local function assert_near(actual, expected)
  lu.assertEquals(#actual, #expected)
  for i = 1, #expected do lu.assertAlmostEquals(actual[i], expected[i], 1e-12) end
end

function TestHistory.test_proportional_control_follows_the_mean_over_those_seen()
  local mean = { 1, 1 / 2, 2 / 3, 1 / 2, 3 / 5, 1 / 2 }
  local D0, tau_h, expected_D0, expected_tau_h = 5, 0.75, {}, {}
  for i, m in ipairs(mean) do
    D0, tau_h = D0 + (m - 0.5), tau_h - 0.125 * (m - 0.5)
    expected_D0[i], expected_tau_h[i] = D0, tau_h
  end
  assert_near(values("D0", {}, #mean), expected_D0)
  assert_near(values("tau_h", {}, #mean), expected_tau_h)
end

function TestHistory.test_the_window_forgets_after_W_iterations()
  assert_near(values("D0", { W = 1 }, 5), { 5.5, 5, 5.5, 5, 5.5 })
  assert_near(values("D0", { W = 2 }, 5), { 5.5, 5.5, 5.5, 5.5, 5.5 })
  local third = 1 / 3
  assert_near(values("D0", { W = 3 }, 5), { 5.5, 5.5, 6 - third, 5.5, 6 - third })
end

function TestHistory.test_eta_D_and_eta_h_are_the_steps()
  assert_near(values("D0", { W = 1, eta_D = 2.0 }, 3), { 6, 5, 6 })
  assert_near(values("tau_h", { W = 1, eta_h = 0.25 }, 3), { 0.625, 0.75, 0.625 })
end

function TestHistory.test_proportional_control_is_clipped()
  local draft, target = circle()
  assert_near(values("D0", { eta_D = 4.0 }, 3, draft, target), { 7, 7, 7 }) -- D_max - 1
  assert_near(values("tau_h", { eta_h = 1.0 }, 3, draft, target), { 0.25, 0, 0 })
  assert_near(values("D0", { eta_D = 4.0 }, 4, draft, NEVER), { 3, 1, 1, 1 })
  assert_near(values("tau_h", { eta_h = 0.375 }, 3, draft, NEVER), { 0.9375, 1, 1 })
end

function TestHistory.test_D0_is_used_rounded()
  -- a chain of half sure tokens, all accepted: D0 grows by a quarter each iteration and the tree with it, at 0.5
  local draft, target = circle(0.5)
  local params = { breadth = false, B_min = 1, B_mid = 1, rho_stop = 0.0, tau = 0.0, rho_deep = 0.9, a_star = 0.75,
    D0 = 3 }
  local sizes = {}
  for shape in (tree(fake(draft, target), "dynatree", params, 6) .. "|"):gmatch "([^|]*)|" do
    sizes[#sizes + 1] = count(shape)
  end
  lu.assertEquals(sizes, { 4, 4, 5, 5, 5, 5 }) -- D0 = 3, 3.25, 3.5, 3.75, 4, 4.25
end

function TestHistory.test_tau_h_is_tested_first_also_when_it_has_fallen_below_tau_l()
  local draft, target = circle(0.25)
  local params = { tau = 1.0, tau_h = 0.5, tau_l = 0.375, a_star = 0.5, eta_h = 1.0 }
  local first, second = tree(fake(draft, target), "dynatree", params, 2):match "(.*)|(.*)"
  lu.assertEquals(count(first), 3)  -- c = 0.25 is below tau_l
  lu.assertEquals(count(second), 1) -- and not below tau_h = 0
end

function TestHistory.test_threshold_control_waits_for_five_samples()
  local draft, target = circle()
  local params = { control = "threshold", tau_h = 0.9 }
  assert_near(values("D0", params, 8, draft, target), { 5, 5, 5, 5, 6, 7, 7, 7 })
  assert_near(values("tau_h", params, 6, draft, target), { 0.9, 0.9, 0.9, 0.9, 0.85, 0.8 })
  assert_near(values("rho_deep", params, 6, draft, target), { 0.5, 0.5, 0.5, 0.5, 0.45, 0.4 })
end

function TestHistory.test_threshold_control_lowers_what_it_raised_and_is_clipped()
  local draft, target = circle()
  local params = { control = "threshold", tau_h = 0.6, rho_deep = 0.4 }
  assert_near(values("tau_h", params, 9, draft, target), { 0.6, 0.6, 0.6, 0.6, 0.55, 0.5, 0.5, 0.5, 0.5 })
  assert_near(values("rho_deep", params, 9, draft, target), { 0.4, 0.4, 0.4, 0.4, 0.35, 0.3, 0.3, 0.3, 0.3 })
  params = { control = "threshold", tau_h = 0.85, rho_deep = 0.7, D0 = 4 }
  assert_near(values("D0", params, 9, draft, NEVER), { 4, 4, 4, 4, 3, 2, 2, 2, 2 })
  assert_near(values("tau_h", params, 9, draft, NEVER), { 0.85, 0.85, 0.85, 0.85, 0.9, 0.95, 0.95, 0.95, 0.95 })
  assert_near(values("rho_deep", params, 9, draft, NEVER), { 0.7, 0.7, 0.7, 0.7, 0.75, 0.8, 0.8, 0.8, 0.8 })
end

function TestHistory.test_threshold_control_rests_within_a_tenth_of_the_aim()
  -- the mean of five is 0.6, that of six 0.5
  local function after(a_star) return values("D0", { control = "threshold", a_star = a_star }, 6)[6] end
  lu.assertEquals(after(0.5), 5)
  lu.assertEquals(after(0.41), 5 + 1)
  lu.assertEquals(after(0.59), 5)
  lu.assertEquals(after(0.61), 5 - 1)
  lu.assertEquals(after(0.39), 5 + 2)
end

function TestHistory.test_statistic_path_is_accepted_over_depth_and_tree_over_all_nodes()
  -- two children of the root, the first accepted
  local draft, target = { [1] = { [1] = 0.5, [2] = 0.25 } }, { [1] = 1 }
  local params = { B_min = 2, B_mid = 2, B_max = 3, W = 1, tau = 1.0 }
  assert_near(values("D0", with(params, { statistic = "path" }), 1, draft, target), { 5.5 })
  assert_near(values("D0", with(params, { statistic = "tree" }), 1, draft, target), { 5 })
end

function TestHistory.test_iterations_without_a_tree_are_skipped()
  -- the draft model's context ends after three tokens
  local draft, target = circle()
  local short = { draft_context = 3 }
  assert_near(values("D0", {}, 4, draft, target, short), { 5.5, 5.5, 5.5, 5.5 })
end

function TestHistory.test_off_changes_nothing()
  assert_near(values("D0", { history = false }, 6), { 5, 5, 5, 5, 5, 5 })
  assert_near(values("D0", { history = false, control = "threshold" }, 6), { 5, 5, 5, 5, 5, 5 })
end

TestParameters = {}

function TestParameters.test_bounds_that_depend_on_one_another_are_bad_usage()
  local bad = {
    { "B_min <= B_mid <= B_max", { B_min = 3, B_mid = 2 } },
    { "B_min <= B_mid <= B_max", { B_mid = 4, B_max = 3 } },
    { "tau_l <= tau_h", { tau_l = 0.5, tau_h = 0.4 } },
    { "D0 < D_max", { D0 = 8, D_max = 8 } },
    { "rho_stop <= rho_deep", { rho_stop = 0.6, rho_deep = 0.5 } },
    { "D_max >= 3", { control = "threshold", D0 = 1, D_max = 2 } },
  }
  local pair = fake(UNSURE)
  for _, case in ipairs(bad) do
    local result, err = pair:generate { policy = "dynatree", params = case[2], prompt = " 1", tokens = 4 }
    lu.assertNil(result)
    lu.assertEquals(err.kind, "input")
    lu.assertStrContains(err.message, case[1])
  end
end

function TestParameters.test_bounds_of_what_is_off_do_not_bind()
  local pair = fake(UNSURE)
  for _, params in ipairs {
    { depth = false, D0 = 12, D_max = 8 },
    { depth = false, rho_stop = 0.6, rho_deep = 0.5 },
    { history = false, control = "threshold", D0 = 1, D_max = 2 },
  } do
    lu.assertNotNil(pair:generate { policy = "dynatree", params = params, prompt = " 1", tokens = 4 })
  end
end

function TestParameters.test_as_published_guesses_one_root_and_rebuilds()
  for _, policy in ipairs { "fixed_tree", "dynatree" } do
    local result = assert(fake(UNSURE):generate { policy = policy, preset = "as_published", prompt = " 1", tokens = 4 })
    lu.assertEquals(result.params.root_branch, 1)
    lu.assertTrue(result.params.rebuild)
    local shape = tree(fake(UNSURE), policy, {}, 1, { preset = "as_published" })
    lu.assertEquals(shape:match "^0>2 1>", "0>2 1>")
  end
end

TestExactness = {}

local function same_tokens(policy, params, pair)
  pair = pair or fake(nil, nil, { vocab = 600, context = 160 })
  for seed = 1, 5 do
    local request = { prompt = (" %d 7"):format(seed), tokens = 150, ignore_eos = true, seed = seed }
    local plain = assert(pair:generate(with(request, { policy = "ar" })))
    local result = assert(pair:generate(with(request, { policy = policy, params = params })))
    lu.assertEquals(result.tokens, plain.tokens, policy)
    if policy ~= "ar" then lu.assertTrue(result.stats.accepted > 0, policy) end
  end
end

function TestExactness.test_every_policy_gives_the_tokens_of_plain_decoding()
  same_tokens("linear")
  same_tokens("fixed_tree")
  same_tokens("fixed_tree", { root_branch = 1, rebuild = true, N_max = 7 })
  same_tokens("dynatree")
  same_tokens("dynatree", { control = "threshold", statistic = "tree", rebuild = true })
  for _, policy in ipairs { "hf_assisted", "eagle2", "opt_tree", "dyspec", "specinfer" } do same_tokens(policy) end
  same_tokens("prompt_lookup", nil, probe.fake(nil, { [7] = 8, [8] = 9, [9] = 7 }, { context = 160, draft = false }))
end

function TestExactness.test_so_does_every_hostile_one()
  for _, name in ipairs { "random_trees", "one_level", "past_the_room", "duplicates", "empty_at_random", "keep_random",
    "rollbacks" } do
    local vocab = (name == "random_trees" or name == "one_level") and { vocab = 600 } or nil
    same_tokens(ROOT .. "tests/exact/hostile/" .. name .. ".lua", vocab)
  end
end

os.exit(lu.LuaUnit.run())
