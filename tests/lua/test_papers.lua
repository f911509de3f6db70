-- The definitions of the papers' experiments: dt.papers.
local experiment = require "dt.experiment"
local lu = require "luaunit"
local papers = require "dt.papers"

TestPapers = {}

local function labels(paper)
  local list = {}
  for i, arm in ipairs(paper.arms) do list[i] = arm.label or experiment.label(arm) end
  return list
end

function TestPapers.test_no_two_arms_share_a_label_and_references_are_arms()
  for name, paper in pairs(papers) do
    local seen = {}
    for _, label in ipairs(labels(paper)) do
      lu.assertNil(seen[label], name .. ": " .. label)
      seen[label] = true
    end
    if paper.reference then lu.assertTrue(seen[paper.reference], name .. ": " .. paper.reference) end
  end
end

function TestPapers.test_what_follows_an_experiment_is_one_that_nothing_follows()
  for name, paper in pairs(papers) do
    if paper.also then lu.assertTrue(papers[paper.also] ~= nil and not papers[paper.also].also, name) end
  end
  lu.assertEquals(papers.batch.batches, { 1, 2, 4, 8, 16, 32 })
end

function TestPapers.test_the_sweep_has_450_settings()
  lu.assertEquals(#papers.fixed_sweep.arms * #papers.fixed_sweep.tokens, 450)
end

function TestPapers.test_lengths_grow()
  for name, paper in pairs(papers) do
    for i = 2, #paper.tokens do lu.assertTrue(paper.tokens[i] > paper.tokens[i - 1], name) end
  end
end

function TestPapers.test_the_ablation_adds_one_mechanism_after_the_other()
  local switches = {}
  for i, arm in ipairs(papers.ablation.arms) do
    local on = {}
    for _, name in ipairs { "breadth", "depth", "history" } do
      if arm.params[name] then on[#on + 1] = name end
    end
    switches[i] = table.concat(on, " ")
  end
  lu.assertEquals(switches, { "", "breadth depth", "breadth depth history", "breadth", "depth", "history" })
end

os.exit(lu.LuaUnit.run())
