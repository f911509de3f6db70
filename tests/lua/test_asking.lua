-- dt.asking: what drivers take of the command line's options; dt.seeds; and experiments with chats.
local lu = require "luaunit"
local args = require "dt.api.args"
local asking = require "dt.asking"
local dt = require "dt"
local experiment = require "dt.experiment"
local seeds = require "dt.seeds"

local function chosen(...)
  local opts, message = args.parse({ options = asking.OPTIONS, models = false }, { ... })
  if not opts then return nil, message end
  return asking.chosen(opts)
end

TestAsking = {}

function TestAsking.test_nothing_said_is_greedy_plain_text_one_at_a_time()
  local how = assert(chosen())
  lu.assertEquals(how:options { ignore_eos = true }, { ignore_eos = true, temp = 0.0 })
  lu.assertEquals(how:noted { chars = 8 }, { chars = 8, seed = 0 })
  lu.assertNil(how.chat)
  lu.assertNil(how.wanted)
end

function TestAsking.test_each_option_goes_where_it_belongs()
  local how = assert(chosen("--temp", "0.8", "--top-k", "5", "--top-p", "0.9", "--min-p", "0.1", "-s", "7", "-np", "3",
    "--system", "Be brief."))
  lu.assertEquals(how:options {}, { temp = 0.8, top_k = 5, top_p = 0.9, min_p = 0.1 })
  lu.assertEquals(how:noted {}, { seed = 7, parallel = 3 })
  lu.assertEquals(how.chat, { system = "Be brief." })
  lu.assertEquals(how.wanted, "temp 0.8, top_k 5, top_p 0.9, min_p 0.1, chat, 3 at once")
  lu.assertEquals(assert(chosen("--template", "chatml")).chat, { template = "chatml" })
  lu.assertEquals(assert(chosen("--chat")).chat, {})
end

-- Numbers are floats in the engine: what rounds to a bound lies within it.
function TestAsking.test_bounds_are_those_of_floats()
  lu.assertEquals(assert(chosen("--temp", "1", "--top-p", "1.00000001")).sampling.top_p, 1.00000001)
  lu.assertNil((chosen("--temp", "1", "--top-p", "1.0000001")))
  lu.assertEquals(assert(chosen("--temp", "0.00099999999999")).sampling.temp, 0.00099999999999)
  lu.assertEquals({ chosen("--temp", "0.000999") }, { nil, "--temp: 0.000999 is out of range: 0, or 0.001 to 100" })
  lu.assertEquals(assert(chosen("--temp", "-0")).sampling.temp, 0.0)
  for _, text in ipairs { "1e-400", "1e-46", "1.17e-38" } do
    lu.assertEquals({ chosen("--temp", text) },
      { nil, ("--temp: %s is too close to 0: the smallest number above 0 is 1.18e-38"):format(
        text == "1e-400" and "4.94066e-324" or text) })
  end
  for _, text in ipairs { "", " ", "1 ", "x" } do
    lu.assertEquals({ chosen("--temp", text) }, { nil, ("--temp '%s': expected a number"):format(text) })
  end
  for _, text in ipairs { "inf", "1e400" } do
    lu.assertEquals({ chosen("--temp", text) }, { nil, "--temp: inf is out of range: 0, or 0.001 to 100" })
  end
end

function TestAsking.test_prompts_have_seeds_one_after_another_alone_and_in_batches()
  local prompts = {}
  for i = 1, 5 do prompts[i] = { set = "s", name = "s/" .. i, text = "t" .. i } end
  local function said(how, list, before)
    local texts = {}
    for i, prompt in ipairs(how:deal(list, before)) do
      texts[i] = ("%s:%s:%s"):format(prompt.name, prompt.generate.seed, table.concat(prompt.texts or { prompt.text }))
    end
    return table.concat(texts, " ")
  end
  lu.assertEquals(said(chosen("--seed", "7"), prompts), "s/1:7:t1 s/2:8:t2 s/3:9:t3 s/4:10:t4 s/5:11:t5")
  lu.assertEquals(said(chosen("--seed", "7", "-np", "2"), prompts), "s@2/1:7:t1t2 s@2/2:9:t3t4 s@2/3:11:t5")
  lu.assertEquals(said(chosen("-np", "9"), prompts, { prompts = 5, batches = 3 }), "s@9/4:5:t1t2t3t4t5")
  lu.assertEquals(said(chosen("-np", "2"), {}), "")
  lu.assertNil(prompts[1].generate) -- the list given stays
end

TestSeeds = {}

function TestSeeds.test_they_are_of_64_bits()
  for text, seed in pairs { ["0"] = 0, ["007"] = 7, ["1000000000000000"] = 1000000000000000,
                            ["1000000000000001"] = "1000000000000001",
                            ["9223372036854775808"] = "9223372036854775808",
                            ["18446744073709551615"] = "18446744073709551615" } do
    lu.assertEquals(seeds.parse(text), seed)
  end
  for _, text in ipairs { "", "-1", "+1", " 1", "1.0", "0x1", "18446744073709551616", "99999999999999999999",
                          ("1"):rep(21) } do
    lu.assertNil(seeds.parse(text), text)
  end
  lu.assertEquals(seeds.after(7, 3), 10)
  lu.assertEquals(seeds.after("9223372036854775807", 1), "9223372036854775808")
  lu.assertEquals(seeds.after("18446744073709551615", 1), 0)
  lu.assertEquals(seeds.after("18446744073709551613", 2), "18446744073709551615")
  lu.assertEquals(seeds.bits "18446744073709551615", -1)
end

TestChats = {}

local DATE = "26 Jul 2024"

local function run_of(pair, t)
  local done, message = experiment.run { name = "c", pair = pair, warmup = 0, tokens = { 9 }, chat = t.chat,
    arms = t.arms or { { policy = "linear" } }, prompts = t.prompts or { { set = "s", name = "s/1", text = "Hello" } } }
  return done, message
end

-- The output of plain decoding on that question.
local function answer(pair, messages, more)
  local options = { policy = "ar", tokens = 9, messages = messages, template = "chatml", date = DATE }
  for key, value in pairs(more or {}) do options[key] = value end
  return assert(pair:generate(options)).stats.output_hash
end

function TestChats.test_a_text_is_the_users_message()
  local pair <close> = assert(dt.load {})
  local user = { role = "user", content = "Hello" }
  local done = assert(run_of(pair, { chat = { template = "chatml" } }))
  lu.assertEquals(done.runs[1].stats.output_hash, answer(pair, { user }))
  lu.assertEquals({ done.head.protocol.chat, done.head.protocol.system, done.head.protocol.date },
    { "chatml", nil, DATE })
  done = assert(run_of(pair, { chat = { template = "chatml", system = "Brief." } }))
  local with_system = { { role = "system", content = "Brief." }, user }
  lu.assertEquals(done.runs[1].stats.output_hash, answer(pair, with_system))
  lu.assertEquals(done.head.protocol.system, "Brief.")
  -- under a window, whose prompt pass is its own; and several at once
  local arms = { { label = "w", policy = "linear", window = 9, sinks = 2 } }
  done = assert(run_of(pair, { chat = { template = "chatml" }, arms = arms }))
  for _, run in ipairs(done.runs) do
    lu.assertEquals(run.stats.output_hash, answer(pair, { user }, run.window and { window = 9, sinks = 2 }))
  end
  local batch = { { set = "s", name = "s@2/1", texts = { "Hello", "Hello" } } }
  done = assert(run_of(pair, { chat = { template = "chatml" }, prompts = batch }))
  lu.assertEquals(done.runs[1].stats.output_hash, answer(pair, { user }) .. " " .. answer(pair, { user }))
end

function TestChats.test_a_model_without_a_template_ends_it_before_a_file_is_begun()
  local pair <close> = assert(dt.load {})
  local done, message = run_of(pair, { chat = {} })
  lu.assertNil(done)
  lu.assertStrContains(message, "mini-target has no chat template")
  done, message = run_of(pair, { chat = { template = "mistral", system = "x" } })
  lu.assertNil(done)
  lu.assertStrContains(message, "this chat template does not support a system message")
end

os.exit(lu.LuaUnit.run())
