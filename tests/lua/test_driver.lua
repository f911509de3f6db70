-- Pairs, prefixes and generation as a driver sees them, on a scripted pair whose target always says 1.
local lu = require "luaunit"
local dt = require "dt"

local options = { vocab = 9, context = 60, target = { [""] = { [1] = 0.9 } }, draft = { [""] = { [1] = 0.5 } } }

TestGenerate = {}

function TestGenerate.setUp() TestGenerate.pair = assert(dt.fake(options)) end

function TestGenerate.tearDown() TestGenerate.pair:close() end

function TestGenerate.test_text_comes_in_pieces_that_make_the_whole()
  local pieces = {}
  local result = TestGenerate.pair:generate { policy = "linear", prompt = " 7", tokens = 9,
                                              on_text = function(text) pieces[#pieces + 1] = text end }
  lu.assertEquals(table.concat(pieces), result.text)
  lu.assertEquals(result.text, (" 1"):rep(9))
end

function TestGenerate.test_a_listener_that_has_enough_ends_the_text()
  local pieces = 0
  local function enough()
    pieces = pieces + 1
    return pieces < 3
  end
  local result = TestGenerate.pair:generate { policy = "ar", prompt = " 7", tokens = 9, on_text = enough }
  lu.assertEquals({ pieces, result.finish_reason, #result.tokens }, { 3, "interrupted", 3 })
  local done = 0
  assert(TestGenerate.pair:generate_batch {
    policy = "ar", prompts = { " 7", " 8", " 9" }, slots = 1, tokens = 3,
    on_done = function()
      done = done + 1
      return false
    end })
  lu.assertEquals(done, 1)
end

function TestGenerate.test_an_error_in_on_text_is_the_drivers()
  lu.assertErrorMsgContains("mine", TestGenerate.pair.generate, TestGenerate.pair,
                            { policy = "ar", prompt = " 7", on_text = function() error "mine" end })
end

function TestGenerate.test_a_prefix_serves_many_runs_and_says_so()
  local pair = TestGenerate.pair
  local prefix = assert(pair:prefix " 7 8 3")
  for _, name in ipairs { "ar", "linear", "dynatree" } do
    local result = pair:generate { policy = name, prompt = prefix, tokens = 9 }
    lu.assertEquals(result.tokens, pair:generate { policy = name, prompt = " 7 8 3", tokens = 9 }.tokens)
    lu.assertTrue(result.stats.shared_prefix)
    lu.assertEquals(result.prompt_ids, { 7, 8, 3 })
  end
end

function TestGenerate.test_a_policy_error_keeps_what_was_committed()
  local result, err = TestGenerate.pair:generate { prompt = " 7", source = [[
    local P = require "dt.policy".define { name = "p" }
    function P:observe(tree) if tree.seq:length() == 4 then error "enough" end end
    return P ]] }
  lu.assertNil(result)
  lu.assertEquals({ err.kind, err.message, err.file, err.line }, { "policy", "source:2: enough", "source", 2 })
  lu.assertEquals(err.partial.tokens, { 1, 1, 1 })
  lu.assertEquals(err.partial.finish_reason, "policy")
end

function TestGenerate.test_stop_strings()
  local result = TestGenerate.pair:generate { policy = "linear", prompt = " 7", stop = " 1 1 1" }
  lu.assertEquals({ result.finish_reason, result.text, #result.tokens }, { "stop", "", 3 })
  lu.assertEquals(TestGenerate.pair:generate { policy = "ar", prompt = " 7", stop = { "x", "1" } }.text, " ")
end

function TestGenerate.test_bad_options_raise_and_bad_input_is_returned()
  local pair = TestGenerate.pair
  local function raises(text, t) lu.assertErrorMsgContains(text, pair.generate, pair, t) end
  raises("generate: unknown key 'token'", { policy = "ar", prompt = "", token = 3 })
  raises("generate: policy is missing", { prompt = "" })
  raises("generate: prompt is missing", { policy = "ar" })
  for _, tokens in ipairs { 0, -2 } do
    raises(("generate: tokens: %d is out of range: at least 1, or -1"):format(tokens),
      { policy = "ar", prompt = " 1", tokens = tokens })
  end
  for _, tokens in ipairs { 2 ^ 31 | 0, (2 ^ 32 | 0) + 1 } do
    raises(("generate: tokens: %d is out of range: whole numbers have 32 bits"):format(tokens),
      { policy = "ar", prompt = " 1", tokens = tokens })
  end
  raises("generate: tokens: 1.5 is not an integer", { policy = "ar", prompt = " 1", tokens = 1.5 })
  raises("generate: temp: x is not a number", { policy = "ar", prompt = " 1", temp = "x" })
  raises("generate: stop: a table is not a text without NUL", { policy = "ar", prompt = " 1", stop = { {} } })
  raises("top_k: 4294967297 is out of range", { policy = "ar", prompt = " 1", temp = 1, top_k = 4294967297 })
  lu.assertEquals(select(2, pair:generate { policy = "ar", prompt = "" }).kind, "input")
  lu.assertEquals(select(2, pair:generate { policy = "ar", prompt = (" 1"):rep(100) }).kind, "context")
  lu.assertStrContains(select(2, pair:generate { policy = "none", prompt = " 1" }).message, "no policy 'none'")
end

TestPair = {}

function TestPair.test_a_number_that_the_engine_cannot_count_to_raises()
  local pair <close> = assert(dt.fake(options))
  assert(pair:generate { policy = "ar", prompt = " 1", tokens = 2147483647, temp = 1, top_k = 2147483647 })
  lu.assertErrorMsgContains("dt.load: threads: 4294967297 is out of range", dt.load,
    { threads = 4294967297 })
  lu.assertEquals(select(2, dt.load { threads = 1025 }).message, "threads: 1025 is out of range: 1..1024")
  lu.assertErrorMsgContains("dt.load: ctx: 4294967297 is out of range", dt.load,
    { ctx = 4294967297 })
  lu.assertErrorMsgContains("vocab = 4294967305 is out of range", dt.fake, { vocab = 4294967305 })
  lu.assertErrorMsgContains("context = 4294967396 is out of range", dt.fake, { vocab = 9, context = 4294967396 })
  lu.assertErrorMsgContains("eos = 4294967297 is out of range", dt.fake, { vocab = 9, eos = 4294967297 })
  lu.assertErrorMsgContains("a token id = 4294967297 is out of range", dt.fake,
    { vocab = 9, target = { [""] = { [4294967297] = 1 } } })
  lu.assertErrorMsgContains("slots: 4294967297 is out of range", pair.generate_batch, pair,
    { policy = "ar", prompts = { " 1" }, slots = 4294967297 })
end

function TestPair.test_a_pair_says_what_it_is()
  local pair <close> = assert(dt.fake(options))
  lu.assertEquals({ pair.target.vocab, pair.target.context, pair.backend, pair.target_dtype, pair.draft_dtype,
      pair.cache_dtype, pair.nothing }, { 9, 60, "fake", "f16", "f16", "f32", nil })
  local alone <close> = assert(dt.fake { vocab = 9, draft = false })
  lu.assertEquals({ alone.draft, alone.draft_dtype }, {})
end

function TestPair.test_positions_are_scaled_as_asked()
  local pair <close> = assert(dt.load { draft = false, threads = 1, backend = "cpu", ctx = 100,
                                        rope_scaling = "dynamic", rope_scale = 2.5 })
  lu.assertEquals(pair.rope_scaling, "dynamic 2.5, 100 positions")
  lu.assertEquals(pair.target.context, 100)
  lu.assertEquals(select(2, dt.load { draft = false, rope_scaling = "yarn" }).message,
    "rope_scaling: yarn needs rope_scale, such as 4 for a context of four times")
end

function TestPair.test_text_and_ids()
  local pair <close> = assert(dt.fake(options))
  lu.assertEquals(pair:encode " 3 4", { 3, 4 })
  lu.assertEquals(pair:decode { 3, 4 }, " 3 4")
  lu.assertErrorMsgContains("token 9 is out of range: 0..8", pair.decode, pair, { 9 })
  lu.assertEquals(select(2, pair:encode " x").kind, "input")
end

function TestPair.test_closing_frees_prefixes_too_and_may_be_repeated()
  local pair = assert(dt.fake(options))
  local prefix = assert(pair:prefix " 7")
  local other <close> = assert(dt.fake(options))
  lu.assertErrorMsgContains("a prefix of another pair", other.generate, other, { policy = "ar", prompt = prefix })
  pair:close()
  pair:close()
  lu.assertErrorMsgContains("the pair is closed", pair.generate, pair, { policy = "ar", prompt = " 7" })
  lu.assertErrorMsgContains("a closed prefix", other.generate, other, { policy = "ar", prompt = prefix })
end

function TestPair.test_a_missing_model_is_returned()
  local pair, err = dt.load { target = "/no/such/model" }
  lu.assertNil(pair)
  lu.assertEquals(err.kind, "input")
  lu.assertStrContains(err.message, "/no/such/model")
  lu.assertErrorMsgContains("dt.load: unknown key 'model'", dt.load, { model = "x" })
  lu.assertErrorMsgContains("dt.load: no_packed_cache: 1 is not true or false", dt.load, { no_packed_cache = 1 })
end

TestFiles = {}

function TestFiles.test_append_adds_a_line()
  local path = os.tmpname()
  lu.assertTrue(dt.append(path, "one"))
  lu.assertTrue(dt.append(path, "two"))
  local f <close> = assert(io.open(path))
  lu.assertEquals(f:read "a", "one\ntwo\n")
  os.remove(path)
  local done, message = dt.append("/no/such/folder/file", "x")
  lu.assertNil(done)
  lu.assertStrContains(message, "/no/such/folder/file: No such file")
end

function TestFiles.test_progress_is_quiet_without_a_terminal()
  local progress = dt.progress(3)
  for _ = 1, 3 do progress:step() end
  lu.assertEquals(progress.done, 3)
end

os.exit(lu.LuaUnit.run())
