-- eagle2 on scripted pairs: its layers, and the choice of what is verified.
local lu = require "luaunit"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
local fake, tree, kept = probe.fake, probe.tree, probe.kept

-- After 1 come 2 and 3, and what follows 2 is likelier than 3.
local SURE = {
  [1] = { [2] = 0.75, [3] = 0.125 },
  [2] = { [4] = 0.5, [5] = 0.25 },
  [3] = { [6] = 0.5, [7] = 0.25 },
  [4] = { [8] = 0.5, [9] = 0.25 },
  [5] = { [10] = 0.5, [11] = 0.25 },
}

TestEagle2 = {}

function TestEagle2.test_expands_the_top_k_of_the_newest_layer_into_top_k_children()
  -- layer 2: p(4) = 0.375, p(5) = 0.1875, p(6) = 0.0625, p(7) = 0.03125; so 4 and 5 are expanded, not 6 and 7
  local shape = "0>2 0>3 1>4 1>5 2>6 2>7 3>8 3>9 4>10 4>11"
  lu.assertEquals(tree(fake(SURE), "eagle2", { depth = 3, top_k = 2 }), shape)
  lu.assertEquals(probe.drafted(fake(SURE), "eagle2", { depth = 3, top_k = 2 }), "0 1 2 3 4")
end

function TestEagle2.test_depth_counts_layers()
  for depth = 1, 6 do
    local draft = probe.circle(0.5)
    lu.assertEquals(probe.count(tree(fake(draft), "eagle2", { depth = depth, top_k = 1 })), depth)
  end
end

function TestEagle2.test_keeps_the_best_of_all_layers()
  -- by p: 1 (0.75), 3 (0.375), 4 and 7 (0.1875), 2 (0.125), 8 and 9 (0.09375), ..
  local params = { depth = 3, top_k = 2 }
  for total, nodes in pairs { "1", "1 3", "1 3 4", "1 3 4 7", "1 2 3 4 7", "1 2 3 4 7 8", "1 2 3 4 7 8 9" } do
    lu.assertEquals(kept(fake(SURE), "eagle2", probe.with(params, { total = total })), nodes)
  end
end

-- The `total` best nodes by brute force: each is compared with all others.
local function best(nodes, total)
  local p, chosen = probe.cumlogp(nodes), {}
  for v = 1, #p do
    local before = 0
    for w = 1, #p do
      if p[w] > p[v] or (p[w] == p[v] and w < v) then before = before + 1 end
    end
    if before < total then chosen[#chosen + 1] = v end
  end
  return chosen
end

local SHORT = { tokens = 30 }

function TestEagle2.test_the_verified_nodes_are_the_best_and_closed_under_parents()
  local pair = fake(nil, nil, { vocab = 300 })
  for top_k = 1, 10, 3 do
    for _, total in ipairs { 1, 7, 60, 256 } do
      for _, iteration in ipairs(probe.trace(pair, "eagle2", { top_k = top_k, total = total }, 4, SHORT)) do
        local verified, is_kept = {}, { [0] = true }
        for _, node in ipairs(iteration.nodes) do
          if node.kept then
            verified[#verified + 1] = node.id
            is_kept[node.id] = true
            lu.assertTrue(is_kept[node.parent])
          end
        end
        lu.assertEquals(verified, best(iteration.nodes, total))
      end
    end
  end
end

function TestEagle2.test_presets_are_the_published_settings()
  local pair = fake(nil, nil, { vocab = 300 })
  for preset, depth in pairs { eagle2 = 6, eagle3 = 8 } do
    local iterations, result = probe.trace(pair, "eagle2", nil, 1, { preset = preset, tokens = 30 })
    lu.assertEquals(result.params, { depth = depth, top_k = 10, total = 60 })
    lu.assertEquals(#iterations[1].nodes, 1 + 10 + (depth - 1) * 100)
  end
end

function TestEagle2.test_ends_with_the_text_wanted_and_the_draft_models_context()
  local draft, target = probe.circle()
  for tokens = 1, 4 do
    lu.assertEquals(probe.count(tree(fake(draft, target), "eagle2", { top_k = 1 }, 1, { tokens = tokens })), tokens - 1)
  end
  lu.assertEquals(probe.count(tree(fake(draft, target, { draft_context = 3 }), "eagle2", { top_k = 1 })), 3)
end

os.exit(lu.LuaUnit.run())
