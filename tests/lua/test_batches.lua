-- dt.batches, and dt.experiment with batches, on a scripted pair.
local batches = require "dt.batches"
local dt = require "dt"
local experiment = require "dt.experiment"
local lu = require "luaunit"

local VOCAB = 60

local function prompts(n, set)
  local list = {}
  for i = 1, n do
    list[i] = { set = set or "s", name = "s/" .. i, text = (" %d %d %d"):format(i, i * 7 % 50, i * 3 % 50) }
  end
  return list
end

TestBatches = {}

function TestBatches.test_batches_are_whole_and_in_order()
  local list = batches.of(prompts(5), 2)
  lu.assertEquals(#list, 2)
  lu.assertEquals(list[2], { set = "s", name = "s@2/2", axes = { batch = 2 }, texts = { " 3 21 9", " 4 28 12" } })
end

function TestBatches.test_batches_of_several_sets_are_mixed_even_where_one_is_of_one_set()
  local all = prompts(2)
  all[2].set = "t"
  for _, batch in ipairs(batches.of(all, 1)) do lu.assertEquals(batch.set, "mixed") end
end

function TestBatches.test_what_fills_no_batch_may_be_one_more_and_numbers_go_on()
  local list = batches.of(prompts(5), 2, { rest = true, before = 3 })
  lu.assertEquals(#list, 3)
  lu.assertEquals(list[3], { set = "s", name = "s@2/6", axes = { batch = 1 }, texts = { " 5 35 15" } })
  lu.assertEquals(#batches.of(prompts(4), 2, { rest = true }), 2)
  lu.assertEquals(#batches.of(prompts(1), 2, { rest = true }), 1)
end

function TestBatches.test_after_the_last_seed_comes_0()
  local pair = assert(dt.fake { vocab = VOCAB })
  local texts, options = { " 1", " 1" }, { tokens = 9, temp = 1, ignore_eos = true, seed = "18446744073709551615" }
  local hashes = {}
  for i, seed in ipairs { "18446744073709551615", 0 } do
    hashes[i] = assert(pair:generate { policy = "ar", prompt = " 1", tokens = 9, ignore_eos = true, temp = 1,
                                       seed = seed }).stats.output_hash
  end
  lu.assertNotEquals(hashes[1], hashes[2])
  lu.assertEquals(batches.alone(pair, texts, options), table.concat(hashes, " "))
  options.policy = "ar"
  lu.assertEquals(assert(batches.generate(pair, texts, options)).stats.output_hash, table.concat(hashes, " "))
end

function TestBatches.test_a_run_is_a_batch_whose_texts_are_what_they_are_alone()
  local pair = assert(dt.fake { vocab = VOCAB })
  local list = batches.of(prompts(4), 4)
  list[1].generate = { temp = 1, seed = 5 }
  local done = assert(experiment.run { name = "b", pair = pair, prompts = list, tokens = { 9 }, warmup = 0,
                                       arms = { { policy = "linear" } }, generate = { ignore_eos = true } })
  lu.assertEquals(#done.runs, 2)
  local hashes = {}
  for i, prompt in ipairs(prompts(4)) do
    hashes[i] = assert(pair:generate { policy = "ar", prompt = prompt.text, tokens = 9, ignore_eos = true, temp = 1,
                                       seed = 4 + i }).stats.output_hash
  end
  for _, run in ipairs(done.runs) do
    lu.assertEquals(run.stats.output_hash, table.concat(hashes, " "))
    lu.assertAlmostEquals(run.stats.tokens_per_iteration * run.stats.iterations, 36, 1e-9)
    lu.assertTrue(run.stats.tokens_per_second > 0)
    lu.assertEquals({ run.finish_reason, run.prompt_tokens, run.axes }, { "length", 12, { batch = 4 } })
  end
end

os.exit(lu.LuaUnit.run())
