-- dyspec, opt_tree and specinfer, node for node, on scripted pairs.
local lu = require "luaunit"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
local fake, tree = probe.fake, probe.tree

-- p: 2 0.5, 3 0.25; 4 0.25, 5 0.125 after 2; 6 0.125, 7 0.0625 after 3; 8 0.1875 after 4.
local DRAFT = {
  [1] = { [2] = 0.5, [3] = 0.25 },
  [2] = { [4] = 0.5, [5] = 0.25 },
  [3] = { [6] = 0.5, [7] = 0.25 },
  [4] = { [8] = 0.75, [9] = 0.125 },
  [8] = { [10] = 0.5, [11] = 0.25 },
}

TestDySpec = {}

function TestDySpec.test_expands_the_likeliest_leaves_wherever_they_stand()
  -- one leaf per pass: 1 (p 0.5), then 2 (0.25, before 3 by id), then 3, then 7 (0.1875)
  local one = { m = 1, B = 2, budget = 10 }
  lu.assertEquals(tree(fake(DRAFT), "dyspec", one), "0>2 0>3 1>4 1>5 2>6 2>7 3>8 3>9 7>10 7>11")
  lu.assertEquals(probe.drafted(fake(DRAFT), "dyspec", one), "0 1 2 3 7")
end

function TestDySpec.test_takes_m_leaves_in_one_pass()
  -- the second pass expands both children of the root, the third 3 (0.25) and 4 (0.125, before 5 by id)
  lu.assertEquals(probe.drafted(fake(DRAFT), "dyspec", { m = 2, B = 2, budget = 10 }), "0 1 2 3 4")
end

-- The same by the definition: all leaves are looked at, and the m likeliest expanded, until the budget is used.
local function expanded(nodes, m, B, budget)
  local p, children, size = probe.cumlogp(nodes), {}, math.min(B, budget)
  for v = 1, #nodes - 1 do
    local u = nodes[v + 1].parent
    children[u] = (children[u] or 0) + 1
  end
  local is_inner, list = { [0] = true }, { 0 }
  while size < budget do
    local leaves = {}
    for v = 1, size do
      if not is_inner[v] then leaves[#leaves + 1] = v end
    end
    table.sort(leaves, function(a, b) return p[a] > p[b] or (p[a] == p[b] and a < b) end)
    for i = 1, math.min(m, #leaves) do
      if size == budget then break end
      is_inner[leaves[i]] = true
      list[#list + 1] = leaves[i]
      size = size + (children[leaves[i]] or 0)
    end
  end
  table.sort(list)
  return table.concat(list, " ")
end

function TestDySpec.test_is_best_first_on_any_distribution()
  local pair = fake(nil, nil, { vocab = 400 })
  for _, m in ipairs { 1, 3, 4, 7 } do
    for _, B in ipairs { 1, 3, 4 } do
      for _, budget in ipairs { 1, 5, 30, 64 } do
        local params = { m = m, B = B, budget = budget }
        for _, iteration in ipairs(probe.trace(pair, "dyspec", params, 3, { prompt = " " .. 10 * m + B })) do
          lu.assertEquals(#iteration.nodes - 1, budget)
          local drafted = {}
          for _, node in ipairs(iteration.nodes) do
            if node.confidence then drafted[#drafted + 1] = node.id end
          end
          lu.assertEquals(table.concat(drafted, " "), expanded(iteration.nodes, m, B, budget))
        end
      end
    end
  end
end

function TestDySpec.test_leaves_at_the_end_of_the_text_are_no_leaves()
  -- two levels are wanted: what stands on the second is never expanded, and the rest of the budget goes to the first
  local shape = tree(fake(DRAFT), "dyspec", { m = 1, B = 2, budget = 10 }, 1, { tokens = 3 })
  lu.assertEquals(shape, "0>2 0>3 1>4 1>5 2>6 2>7")
  lu.assertEquals(tree(fake(DRAFT), "dyspec", {}, 1, { tokens = 1 }), "")
end

function TestDySpec.test_stops_where_the_draft_models_context_does()
  local draft, target = probe.circle()
  lu.assertEquals(probe.count(tree(fake(draft, target, { draft_context = 3 }), "dyspec", { B = 1 })), 3)
end

TestOptTree = {}

local HALVES = { [1] = { [2] = 0.5, [3] = 0.25 }, [2] = { [4] = 0.5, [5] = 0.25 }, [3] = { [6] = 0.75, [7] = 0.125 } }

function TestOptTree.test_a_layer_is_the_n_best_children_of_the_layer_before()
  -- layer 2: 4 (0.25) and 6 (0.1875) before 5 (0.125) and 7
  lu.assertEquals(tree(fake(HALVES), "opt_tree", { n = 2, threshold = 0.0, max_depth = 2 }), "0>2 0>3 1>4 2>6")
end

-- The sums of the two best weights: 0.75, then still 0.5 + 0.25 with layer 2.
function TestOptTree.test_stops_after_the_first_layer_that_raises_the_sum_by_no_more_than_that()
  local function at(threshold)
    return tree(fake(HALVES), "opt_tree", { n = 2, threshold = threshold, max_depth = 2 })
  end
  lu.assertEquals(at(0.7), "0>2 0>3 1>4 2>6") -- 0.75 is more than that; then 0
  lu.assertEquals(at(0.8), "0>2 0>3")
  local draft = probe.circle(0.5)
  local function depth(threshold) return tree(fake(draft), "opt_tree", { n = 1, threshold = threshold }) end
  lu.assertEquals(depth(0.6), "0>2")
  lu.assertEquals(depth(0.4), "0>2 1>3") -- n = 1: the best node is the first, and the second layer adds nothing
end

function TestOptTree.test_the_sum_is_that_of_the_whole_tree()
  -- a certain token per layer: each of the first n layers adds 1 to the sum, the next one nothing
  local draft = probe.circle()
  for n = 1, 5 do
    local certain = 0
    for _, node in ipairs(probe.trace(fake(draft), "opt_tree", { n = n })[1].nodes) do
      if node.p == 1 then certain = certain + 1 end
    end
    lu.assertEquals(certain, n + 1)
  end
end

function TestOptTree.test_max_depth_is_the_most_layers()
  for max_depth = 1, 4 do
    local pair = fake(nil, nil, { vocab = 300 })
    local nodes = probe.trace(pair, "opt_tree", { n = 4, threshold = 0.0, max_depth = max_depth })[1].nodes
    lu.assertEquals(#nodes - 1, 4 * max_depth)
  end
end

function TestOptTree.test_keeps_three_times_n()
  local pair = fake(nil, nil, { vocab = 300 })
  local iteration = probe.trace(pair, "opt_tree", { n = 4, threshold = 0.0 })[1]
  local p, before, kept = probe.cumlogp(iteration.nodes), {}, 0
  for v = 1, #p do
    before[v] = 0
    for w = 1, #p do
      if p[w] > p[v] or (p[w] == p[v] and w < v) then before[v] = before[v] + 1 end
    end
    lu.assertEquals(iteration.nodes[v + 1].kept, before[v] < 12)
    if iteration.nodes[v + 1].kept then kept = kept + 1 end
  end
  lu.assertEquals(kept, 12)
end

function TestOptTree.test_ends_with_the_text_wanted()
  local draft, target = probe.circle()
  for tokens = 1, 4 do
    local shape = tree(fake(draft, target), "opt_tree", { n = 1, threshold = 0.0 }, 1, { tokens = tokens })
    lu.assertEquals(probe.count(shape), math.min(tokens - 1, 2))
  end
end

TestSpecInfer = {}

function TestSpecInfer.test_widths_are_the_children_of_every_node_of_a_level()
  lu.assertEquals(tree(fake(DRAFT), "specinfer", { widths = "2,1,1" }):sub(1, 15), "0>2 0>3 1>4 2>6")
  lu.assertEquals(tree(fake(DRAFT), "specinfer", { widths = "1,2" }), "0>2 1>4 1>5")
  lu.assertEquals(tree(fake(DRAFT), "specinfer", { widths = "2,2" }), "0>2 0>3 1>4 1>5 2>6 2>7")
end

function TestSpecInfer.test_the_default_is_a_chain_of_two_and_then_three()
  local nodes = probe.trace(fake(nil, nil, { vocab = 300 }), "specinfer")[1].nodes
  local at = {}
  local depth = { [0] = 0 }
  for v = 1, #nodes - 1 do
    depth[v] = depth[nodes[v + 1].parent] + 1
    at[depth[v]] = (at[depth[v]] or 0) + 1
  end
  lu.assertEquals(at, { 1, 1, 3, 3, 3, 3, 3, 3 })
end

function TestSpecInfer.test_is_cut_in_mid_level_by_the_room()
  local pair = fake(nil, nil, { vocab = 300 })
  local nodes = probe.trace(pair, "specinfer", { widths = "9,9,9" })[1].nodes
  lu.assertEquals(#nodes - 1, 256)
  local drafted = 0
  for _, node in ipairs(nodes) do
    if node.confidence then drafted = drafted + 1 end
  end
  lu.assertEquals(drafted, 1 + 9 + 19) -- 9 + 81, and 166 more from 19 nodes of the second level
end

function TestSpecInfer.test_ends_with_the_text_wanted()
  local draft, target = probe.circle()
  for tokens = 1, 5 do
    local params = { widths = "1,1,1,1" }
    lu.assertEquals(probe.count(tree(fake(draft, target), "specinfer", params, 1, { tokens = tokens })), tokens - 1)
  end
end

function TestSpecInfer.test_widths_that_are_no_list_are_bad_usage()
  for _, widths in ipairs { "", "1,", ",1", "1,,2", "0", "33", "1 2", "a", "1.5", "-1" } do
    local result, err = fake(DRAFT):generate {
      policy = "specinfer", params = { widths = widths }, prompt = " 1", tokens = 2,
    }
    lu.assertNil(result, widths)
    lu.assertEquals(err.kind, "input")
    lu.assertStrMatches(err.message, "specinfer: widths.* is .*")
  end
end

os.exit(lu.LuaUnit.run())
