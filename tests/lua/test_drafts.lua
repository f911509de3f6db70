-- dt.drafts: the table of published drafts, the names of targets, and estimates of costs and speedups.
local lu = require "luaunit"
local estimate = require "dt.drafts.estimate"
local published = require "dt.drafts.published"

local GOOD = "Big-8B o/head eagle3 safetensors 400 mit 3 2.90 MT-Bench, a card"

TestPublished = {}

function TestPublished.test_a_line()
  local rows, mistakes = published.read("# comment\n\n  " .. GOOD .. "  \nBig-8B o/other medusa - - - - - a list\r\n")
  lu.assertEquals(mistakes, {})
  lu.assertEquals(rows[1], { target = "Big-8B", draft = "o/head", kind = "eagle3", file = "safetensors", weights = 400,
                             licence = "mit", guesses = 3, tokens = 2.9, source = "MT-Bench, a card" })
  lu.assertEquals(rows[2], { target = "Big-8B", draft = "o/other", kind = "medusa", source = "a list" })
end

function TestPublished.test_mistakes_name_their_lines()
  local wrong = {
    { "eagle3", "eagle9", "'eagle9' is not a kind of draft" },
    { "safetensors", "zip", "'zip' is not a kind of file" },
    { "400", "many", "weights 'many': expected a number above 0, or -" },
    { "400", "-1", "weights '-1': expected a number above 0, or -" },
    { "400", "nan", "weights 'nan': expected a number above 0, or -" },
    { " 3 ", " 3.5 ", "guesses '3.5': expected a whole number, tree or -" },
    { " 3 ", " 0 ", "guesses '0': expected a whole number, tree or -" },
    { "2.90", "4.1", "tokens '4.1': expected a number from 1 to one more than the guesses, or -" },
    { "2.90", "0.5", "tokens '0.5': expected a number from 1 to one more than the guesses, or -" },
    { " MT%-Bench, a card", "", "expected nine columns" },
    { " 2.90 MT%-Bench, a card", "", "expected nine columns" },
  }
  for _, case in ipairs(wrong) do
    local line = GOOD:gsub(case[1], case[2], 1)
    local rows, mistakes = published.read("# a comment\n" .. line .. "\n" .. GOOD)
    lu.assertEquals(mistakes, { "line 2: " .. case[3] })
    lu.assertEquals(#rows, 1) -- the other lines count
  end
  lu.assertEquals(published.read((GOOD:gsub(" 3 ", " tree ")))[1].guesses, "tree")
end

function TestPublished.test_names()
  local same = { "Qwen3-8B", "qwen3-8b", "Qwen3 8B", "Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B.Q6_K",
                 "Qwen_Qwen3-8B-Q8_0.gguf", "Qwen3-8B-UD-Q4_K_XL.gguf", "qwen3-8b-iq4_nl.gguf",
                 "Qwen3-8B-BF16-00001-of-00002.gguf" }
  for _, name in ipairs(same) do lu.assertTrue(published.is_named("Qwen3-8B", name), name) end
  for _, name in ipairs { "Qwen3-8B-Base", "Qwen3-80B", "Qwen3-8B-Instruct-2507-Q4_K_M.gguf", "My-Qwen3-8B",
                          "Qwen3", "", "DeepSeek-R1-0528-Qwen3-8B-Q4_K_M.gguf", "_" } do
    lu.assertFalse(published.is_named("Qwen3-8B", name), name)
  end
  for _, name in ipairs { "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Meta Llama 3.1 8B Instruct",
                          "Llama-3.1-8B-Instruct" } do
    lu.assertTrue(published.is_named("Llama-3.1-8B-Instruct", name), name)
  end
  lu.assertTrue(published.is_named("Llama-2-7b-chat", "Llama-2-7b-chat-hf"))
  lu.assertTrue(published.is_named("gpt-oss-20b", "gpt-oss-20b-mxfp4.gguf"))
  lu.assertTrue(published.is_named("Qwen2.5-*-Instruct", "qwen2.5-14b-instruct-q5_k_m-00001-of-00003.gguf"))
  lu.assertFalse(published.is_named("Qwen2.5-*-Instruct", "qwen2.5-14b-q5_k_m.gguf"))
end

function TestPublished.test_rows_of_a_target()
  local rows = published.read(table.concat({ GOOD, GOOD, "Big-* o/small model gguf - - - - a list",
                                             "Big-9B " .. GOOD:sub(8) }, "\n"))
  local list = published.of(rows, { "something", "Big-8B-Q4_0.gguf", "Big 8B" })
  lu.assertEquals({ list[1].draft, list[2].draft, list[3] }, { "o/head", "o/small" })
  lu.assertEquals(published.of(rows, { "Small-1B" }), {})
end

-- A target of 4.9 GB, as an 8B model in Q4_K_M.
local TARGET = { digest = "t1", pass = 4.9e9, output = 4e8, all_experts = 0, experts = 0, chosen_experts = 0 }
local CPU = { machine = "a processor", backend = "cpu:avx2" }

TestEstimate = {}

function TestEstimate.test_a_head_by_its_weights()
  local costs = estimate.costs(TARGET, { kind = "eagle3", weights = 400 }, {}, CPU)
  lu.assertAlmostEquals(costs.next, 400e6 * 1.0625 / 4.9e9, 1e-9)
  lu.assertAlmostEquals(costs.rows(1), 1, 1e-12)
  lu.assertAlmostEquals(costs.rows(4), 1.45, 1e-12)
  lu.assertFalse(costs.measured)
  lu.assertAlmostEquals(estimate.cost(costs, 3), 1.45 + 3 * costs.next, 1e-12)
  local shared = estimate.costs(TARGET, { kind = "eagle2", weights = 400 }, {}, CPU) -- reads the target's output, too
  lu.assertAlmostEquals(shared.next, (400e6 * 1.0625 + 4e8) / 4.9e9, 1e-9)
  local gpu = estimate.costs(TARGET, { kind = "eagle3", weights = 400 }, {}, { backend = "cuda" })
  lu.assertAlmostEquals(gpu.next, 400e6 * 2 / 4.9e9, 1e-9)
  lu.assertTrue(gpu.rows(4) < 1.01)
  lu.assertNil(estimate.costs(TARGET, { kind = "eagle3" }, {}, CPU).next)
end

function TestEstimate.test_a_block_head_makes_one_pass()
  local costs = estimate.costs(TARGET, { kind = "dflash", weights = 400 }, {}, CPU)
  lu.assertAlmostEquals(estimate.cost(costs, 5) - estimate.cost(costs, 3), 0.3, 1e-9) -- rows of the target only
end

function TestEstimate.test_files_that_are_here()
  local head = estimate.costs(TARGET, { kind = "head", digest = "d", bytes = 8e8 }, {}, CPU) -- 400 M weights in 16 bits
  lu.assertAlmostEquals(head.next, 400e6 * 1.0625 / 4.9e9, 1e-9)
  local small = { kind = "model", digest = "d", bytes = 6e8, pass = 4.9e8, all_experts = 0, experts = 0 }
  lu.assertAlmostEquals(estimate.costs(TARGET, small, {}, CPU).next, 0.1, 1e-9)
end

function TestEstimate.test_rows_of_a_mixture_read_more_experts()
  local mixture = { digest = "m", pass = 1e9, output = 0, all_experts = 16e9, experts = 128, chosen_experts = 8 }
  local rows = estimate.costs(mixture, { kind = "eagle3", weights = 100 }, {}, CPU).rows
  lu.assertAlmostEquals(rows(1), 1, 1e-12)
  lu.assertAlmostEquals(rows(2), (1e9 + 16e9 * (1 - (15 / 16) ^ 2)) / 2e9 + 0.15, 1e-9)
end

function TestEstimate.test_acceptance_of_a_chain()
  lu.assertAlmostEquals(estimate.acceptance(1, 1.6), 0.6, 1e-6)
  lu.assertAlmostEquals(estimate.acceptance(3, 1 + 0.8 + 0.64 + 0.512), 0.8, 1e-6)
  lu.assertAlmostEquals(estimate.acceptance(4, 5), 1, 1e-6)
end

function TestEstimate.test_the_best_chain()
  local function rows(n) return 1 + 0.1 * (n - 1) end
  local speedup, length = estimate.speedup({ rows = rows, first = 0.1, next = 0.1 }, 0.8)
  lu.assertEquals(length, 4)
  lu.assertAlmostEquals(speedup, (1 + 0.8 + 0.64 + 0.512 + 0.4096) / 1.8, 1e-9)
  speedup, length = estimate.speedup({ rows = rows, first = 0.9, next = 0.9 }, 0.5)
  lu.assertEquals(length, 1)
  lu.assertAlmostEquals(speedup, 1.5 / 2, 1e-9) -- it does not pay
end

local KEY = "vm, a processor, cpu:avx2, 2 threads, greedy, 1 at once, target t1 in q4_k, draft d1 in q8, its ids all"

local function learned(changes)
  local json = require "dt.json"
  local t = { schema = "dtrun.learned/2", key = KEY, target = { { 1, 128, 10, 8 }, { 1, 512, 13, 4 }, { 5, 128, 22, 4 },
              { 3, 128, 99, 1 } }, draft = { { 1, 128, 2.2, 9 } }, first = { { 1, 128, 3.3, 9 } } }
  for key, value in pairs(changes or {}) do t[key] = value end
  return json.encode(t)
end

local function with(texts, digest)
  return estimate.costs(TARGET, { kind = "eagle3", digest = digest, bytes = 8e8 }, estimate.kept(texts, CPU), CPU)
end

function TestEstimate.test_times_that_dtrun_has_kept()
  local costs = with({ "{}", "not JSON", learned() }, "d1")
  lu.assertTrue(costs.measured)
  lu.assertAlmostEquals(costs.next, 0.2, 1e-9)
  lu.assertAlmostEquals(costs.first, 0.3, 1e-9)
  lu.assertAlmostEquals(costs.rows(3), 16.5 / 11, 1e-9) -- between one row and five: the time of three was seen once
  lu.assertAlmostEquals(costs.rows(9), 33 / 11, 1e-9)
  local other = with({ learned() }, "d2") -- another draft: only the target's times are its own
  lu.assertFalse(other.measured)
  lu.assertAlmostEquals(other.rows(5), 2, 1e-9)
end

function TestEstimate.test_a_pair_that_made_no_plain_passes()
  local pair = learned { target = { { 1, 128, 99, 1 }, { 3, 128, 26, 9 } } } -- three rows cost 1.3 passes, by estimate
  lu.assertAlmostEquals(with({ pair }, "d1").next, 2.2 / (26 / 1.3), 1e-9)
  local alone = learned { key = KEY:gsub("d1", ""), target = { { 1, 128, 10, 99 }, { 3, 128, 20, 9 } }, draft = {},
                          first = {} }
  lu.assertAlmostEquals(with({ pair, alone }, "d1").next, 2.2 / (26 / 2), 1e-9) -- 2 passes, as other runs show
end

function TestEstimate.test_times_of_other_conditions_do_not_count()
  for _, change in ipairs { { "cpu:avx2", "cpu:avx512" }, { "a processor", "another" }, { "greedy", "sampled" },
                            { "1 at once", "8 at once" }, { "t1", "t2" } } do
    lu.assertFalse(with({ learned { key = KEY:gsub(change[1], change[2]) } }, "d1").measured, change[2])
  end
  lu.assertFalse(with({ learned { schema = "dtrun.learned/1" } }, "d1").measured)
  for _, target in ipairs { 3, { 3 }, { { 1, 128, "10", 8 } }, { { 1 } } } do
    lu.assertFalse(with({ learned { target = target } }, "d1").measured)
  end
  lu.assertFalse(with({ learned { schema = "dtrun.costs/2" } }, "d1").measured)
  lu.assertFalse(with({ learned { target = { { 1, 128, 10, 1 } } } }, "d1").measured) -- seen once: it may be disturbed
end

function TestEstimate.test_a_measured_table()
  local fields = { schema = "dtrun.costs/2", rows = { 1, 2 }, contexts = { 128, 512 },
                   target = { { 10, 12 }, { 20, 24 } }, draft = { { 1, 1.5 } }, first = { 2 } }
  local costs = with({ learned(fields) }, "d1")
  lu.assertTrue(costs.measured)
  lu.assertAlmostEquals(costs.next, 0.1, 1e-9)
  lu.assertAlmostEquals(costs.first, 0.2, 1e-9)
  lu.assertAlmostEquals(costs.rows(3), 1.4, 1e-9)
  fields.disturbed = true
  lu.assertFalse(with({ learned(fields) }, "d1").measured)
end

os.exit(lu.LuaUnit.run())
