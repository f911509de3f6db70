-- The policies that draft a chain, on scripted pairs: hf_assisted and prompt_lookup.
local lu = require "luaunit"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
local fake, tree = probe.fake, probe.tree

TestAssisted = {}

local function sizes(draft, target, params, iterations)
  local list = {}
  for shape in (tree(fake(draft, target), "hf_assisted", params, iterations) .. "|"):gmatch "([^|]*)|" do
    list[#list + 1] = probe.count(shape)
  end
  return list
end

function TestAssisted.test_K_grows_by_two_when_all_were_accepted()
  local draft, target = probe.circle()
  lu.assertEquals(sizes(draft, target, {}, 4), { 5, 7, 9, 11 })
end

function TestAssisted.test_K_shrinks_by_one_otherwise_down_to_one()
  local draft = probe.circle()
  lu.assertEquals(sizes(draft, { [1] = 1 }, {}, 7), { 5, 4, 3, 2, 1, 1, 1 })
end

function TestAssisted.test_one_rejected_token_is_enough_to_shrink()
  -- the target leaves the circle after 4, so 2, 3 and 4 are accepted and 5 is not
  local draft, target = probe.circle()
  target[4] = 1
  lu.assertEquals(sizes(draft, target, { K = 4 }, 2), { 4, 3 })
end

function TestAssisted.test_ends_with_the_first_token_below_the_threshold_which_is_kept()
  local draft = probe.circle()
  draft[3] = { [4] = 0.375 }
  lu.assertEquals(tree(fake(draft), "hf_assisted", {}), "0>2 1>3 2>4")
  lu.assertEquals(tree(fake(draft), "hf_assisted", { threshold = 0.375 }), "0>2 1>3 2>4 3>5 4>6")
  lu.assertEquals(tree(fake(draft), "hf_assisted", { threshold = 0.375 + probe.TINY }), "0>2 1>3 2>4")
end

function TestAssisted.test_a_chain_that_ended_early_has_not_brought_all_K()
  local draft, target = probe.circle(0.25)
  lu.assertEquals(probe.states("self.K", fake(draft, target), "hf_assisted", {}, 3), { "4", "3", "2" })
end

function TestAssisted.test_ends_with_the_text_wanted()
  local draft, target = probe.circle()
  for tokens = 1, 5 do
    lu.assertEquals(probe.count(tree(fake(draft, target), "hf_assisted", {}, 1, { tokens = tokens })), tokens - 1)
  end
end

TestPromptLookup = {}

local function lookup(prompt, params, options)
  local pair = fake(nil, { [1] = 1, [2] = 2, [3] = 3 }, { draft = false })
  return tree(pair, "prompt_lookup", params, 1, probe.with({ prompt = prompt }, options or {}))
end

function TestPromptLookup.test_proposes_what_followed_the_last_tokens()
  lu.assertEquals(lookup " 1 2 3 4 5 6 1 2 3", "0>4 1>5 2>6 3>1 4>2 5>3")
  lu.assertEquals(lookup(" 1 2 3 4 5 6 1 2 3", { K = 2 }), "0>4 1>5")
end

function TestPromptLookup.test_the_latest_match_comes_first()
  lu.assertEquals(lookup(" 1 2 3 4 1 2 3 5 1 2 3", { K = 1 }), "0>5")
end

function TestPromptLookup.test_a_longer_match_comes_before_a_later_one()
  lu.assertEquals(lookup(" 1 2 3 4 9 2 3 5 9 3 6 1 2 3", { K = 1 }), "0>4")
  lu.assertEquals(lookup(" 1 2 3 4 9 2 3 5 9 3 6 8 2 3", { K = 1 }), "0>5")
  lu.assertEquals(lookup(" 1 2 3 4 9 2 3 5 9 3 6 8 7 3", { K = 1 }), "0>6")
  lu.assertEquals(lookup(" 1 2 3 4 9 2 3 5 9 3 6 1 2 3", { K = 1, n = 2 }), "0>5")
  lu.assertEquals(lookup(" 1 2 3 4 9 2 3 5 9 3 6 1 2 3", { K = 1, n = 1 }), "0>6")
end

function TestPromptLookup.test_a_match_may_overlap_the_end()
  lu.assertEquals(lookup " 1 1 1 1", "0>1")
  lu.assertEquals(lookup " 1 2 1 2 1", "0>2 1>1")
end

function TestPromptLookup.test_nothing_is_proposed_where_nothing_matches()
  lu.assertEquals(lookup " 1 2 3 4", "")
  lu.assertEquals(lookup " 1", "")
end

function TestPromptLookup.test_generated_text_is_searched_too()
  -- 1 2 3 is generated, then 1: from then on 2 follows again
  local pair = fake(nil, { [1] = 2, [2] = 3, [3] = 1 }, { draft = false })
  lu.assertEquals(tree(pair, "prompt_lookup", { K = 2 }, 5), "|||0>2 1>3|0>2 1>3")
end

function TestPromptLookup.test_ends_with_the_text_wanted_and_the_context()
  lu.assertEquals(lookup(" 1 2 3 4 5 6 1 2 3", {}, { tokens = 3 }), "0>4 1>5")
  local pair = fake(nil, nil, { draft = false, context = 11 })
  lu.assertEquals(tree(pair, "prompt_lookup", {}, 1, { prompt = " 1 2 3 4 5 6 1 2 3" }), "0>4")
end

function TestPromptLookup.test_takes_a_text_with_more_runs_than_a_table_of_the_box_has_keys()
  local pair = fake(nil, nil, { vocab = 3000, context = 40100, draft = false })
  local result = assert(pair:generate { policy = "prompt_lookup", prompt = probe.long_text(40000, 3000), tokens = 4 })
  lu.assertEquals(#result.tokens, 4)
end

os.exit(lu.LuaUnit.run())
