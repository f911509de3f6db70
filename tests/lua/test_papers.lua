-- The definitions of the papers' experiments: dt.papers.
local contexts = require "dt.contexts"
local dt = require "dt"
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

function TestPapers.test_prompts_of_several_lengths_end_alike()
  local pair <close> = assert(dt.load {})
  local texts = {}
  for i, word in ipairs { "one", "two", "three" } do
    texts[i] = { set = "s", name = "s/" .. i, text = ("The %s. "):format(word):rep(20) .. word }
  end
  local ends = { texts[2], texts[3] }
  local list, missing = contexts.before(pair, ends, texts, { 10, 100, 150, 4000 })
  local most = #assert(pair:encode(texts[1].text .. "\n\n" .. texts[3].text .. "\n\n" .. texts[2].text))
  lu.assertTrue(most > 150 and most < 4000)
  lu.assertEquals(missing, { 4000 })
  lu.assertEquals(#list, 6)
  for i, length in ipairs { 10, 10, 100, 100, 150, 150 } do
    local prompt, of = list[i], ends[(i - 1) % 2 + 1]
    lu.assertEquals({ prompt.set, prompt.name, prompt.axes },
                    { "s", ("%s@%d"):format(of.name, length), { context = length } })
    lu.assertAlmostEquals(#assert(pair:encode(prompt.text)), length, 2)
    local tail = of.text:sub(-30) -- its own text is last, and not repeated
    lu.assertEquals(prompt.text:sub(-#tail), tail)
    lu.assertEquals(select(2, prompt.text:gsub(of.text:match "%w+$" .. "$", "")), 1)
    lu.assertNil(prompt.text:sub(1, -#of.text - 1):find("The " .. of.text:match "%w+$", 1, true))
  end
end

os.exit(lu.LuaUnit.run())
