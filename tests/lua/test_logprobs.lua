-- Log-probabilities as drivers get them, prompts of token ids, several answers, and perplexity over all of these.
local lu = require "luaunit"
local dt = require "dt"

local ROOT = arg[0]:match "^(.*/)tests/lua/" or "./"
local PROMPT = "It was a dark night, and the wind was cold."
local pair = assert(dt.load { threads = 1 })

local function generate(more)
  local t = { policy = "linear", prompt = PROMPT, tokens = 12 }
  for key, value in pairs(more) do t[key] = value end
  return assert(pair:generate(t))
end

TestLogprobs = {}

function TestLogprobs.test_blocks_are_told_as_the_result_has_them()
  local told, texts, order = {}, {}, {}
  local result = generate {
    logprobs = 3,
    on_logprobs = function(list)
      order[#order + 1] = "logprobs"
      table.move(list, 1, #list, #told + 1, told)
    end,
    on_text = function(text)
      order[#order + 1] = "text"
      texts[#texts + 1] = text
    end,
  }
  lu.assertEquals(order[1], "logprobs")
  lu.assertEquals(table.concat(texts), result.text)
  lu.assertEquals(#told, 12)
  lu.assertTrue(result.stats.iterations < 12, "no block has two")
  for i, token in ipairs(told) do
    local same = result.logprobs[i]
    lu.assertEquals(token.id, result.tokens[i])
    lu.assertEquals({ same.id, #same.top, same.top[1][1] }, { token.id, 3, token.top[1][1] })
    lu.assertAlmostEquals(token.logprob, same.logprob, 1e-7)
    lu.assertTrue(token.top[1][2] >= token.top[2][2] and token.top[2][2] >= token.top[3][2])
    lu.assertEquals(token.logprob, token.top[1][2], "the likeliest token was taken")
  end
end

function TestLogprobs.test_blocks_are_told_without_log_probabilities()
  local ids, blocks = {}, 0
  local result = generate { on_logprobs = function(list)
    blocks = blocks + 1
    for _, token in ipairs(list) do
      ids[#ids + 1] = token.id
      lu.assertNaN(token.logprob)
    end
  end }
  lu.assertEquals({ ids, blocks }, { result.tokens, result.stats.iterations })
end

-- With the whole text as a prompt, the generated tokens have the same log-probabilities again.
function TestLogprobs.test_a_prompt_of_ids_has_the_log_probabilities_of_its_tokens()
  local result = generate { logprobs = 2, temp = 1.0, seed = 3 }
  local ids = table.move(result.prompt_ids, 1, #result.prompt_ids, 1, {})
  table.move(result.tokens, 1, 12, #ids + 1, ids)
  local again = generate { policy = "ar", prompt = ids, tokens = 1, logprobs = 2, echo = true }
  lu.assertEquals(again.prompt_ids, ids)
  for i = 1, 12 do lu.assertEquals(again.prompt_logprobs[#result.prompt_ids + i], result.logprobs[i]) end
  local of_text = generate { policy = "ar", tokens = 1, logprobs = 0, echo = true }
  for i = 2, #result.prompt_ids do
    lu.assertEquals(of_text.prompt_logprobs[i].logprob, again.prompt_logprobs[i].logprob)
    lu.assertEquals(of_text.prompt_logprobs[i].top, {})
  end
end

function TestLogprobs.test_what_is_refused()
  local function refused(what, more)
    local ok, message = pcall(function()
      local _, failure = pair:generate(more)
      error(failure and failure.message or "it ran")
    end)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(message), what)
  end
  refused("logprobs: 21 is out of range: 0..20", { policy = "ar", prompt = PROMPT, logprobs = 21 })
  refused("log-probabilities", { policy = "ar", prompt = PROMPT, echo = true, tokens = 1 })
  refused("number 2 is not a token id", { policy = "ar", prompt = { 1, "x" } })
  refused("number 3 is not a token id", { policy = "ar", prompt = { 1, 2, -3 } })
  refused("prompt token 1 is 4096, which is out of range: 0..4095", { policy = "ar", prompt = { 4096 } })
  refused("repeat_penalty: 0.001 is out of range: 0.01 to 100",
    { policy = "ar", prompt = PROMPT, repeat_penalty = 0.001 })
  refused("logit_bias: true is not {token's id or text, bias or false",
    { policy = "ar", prompt = PROMPT, logit_bias = { { 1, true } } })
  refused("logit_bias: true is not {token's id or text, bias or false",
    { policy = "ar", prompt = PROMPT, logit_bias = { { 1, true } } })
  refused("is 4 tokens", { policy = "ar", prompt = PROMPT, logit_bias = { { "hello world", 1 } } })
  refused("unknown key 'answers'", { policy = "ar", prompt = PROMPT, answers = 2 })
  local prefix = assert(pair:prefix(PROMPT))
  refused("log-probabilities of a prefix are not available, since its pass is over",
    { policy = "ar", prompt = prefix, logprobs = 0, echo = true, tokens = 1 })
end

function TestLogprobs.test_answers_share_their_prompts_pass()
  local results, failures = pair:generate_batch {
    policy = "linear", prompts = { PROMPT, "The ship" }, answers = 3, slots = 2, tokens = 8, temp = 1.0, seed = 5,
  }
  lu.assertEquals(failures, {})
  for i = 1, 6 do
    local prompt = i > 3 and "The ship" or PROMPT
    local alone = generate { policy = "ar", prompt = prompt, tokens = 8, temp = 1.0, seed = 4 + i }
    lu.assertEquals(results[i].tokens, alone.tokens)
    lu.assertEquals(results[i].batch, { index = i, slots = 2, prompt = i > 3 and 2 or 1 })
    lu.assertEquals(results[i].stats.shared_prefix, i % 3 ~= 1)
  end
end

function TestLogprobs.test_perplexity_is_that_of_the_log_probabilities()
  local path = ROOT .. "scripts/prompts/novels/01.txt"
  local file = assert(io.open(path, "rb"))
  local ids = assert(pair:encode(file:read "a"))
  file:close()
  local halves = { options = "", first = 18, step = 32, size = 32 }
  for _, how in ipairs { halves, { options = "--stride 8", first = 29, step = 8, size = 36 } } do
    local process = assert(io.popen(("/proc/$PPID/exe run perplexity %s -c 32 --chunks 2 -t 1 %s 2>&1"):format(path,
      how.options)))
    local said = process:read "a"
    process:close()
    local sum, n = 0.0, 0
    for window = 0, 1 do
      local part = table.move(ids, window * how.step + 1, window * how.step + how.size, 1, {})
      local result = generate { policy = "ar", prompt = part, tokens = 1, logprobs = 0, echo = true }
      for i = how.first, how.size do sum, n = sum - result.prompt_logprobs[i].logprob, n + 1 end
    end
    lu.assertStrContains(said, ("perplexity %.4f "):format(math.exp(sum / n)))
    lu.assertStrContains(said, ("of %d tokens in 2 windows of %d"):format(n, how.size))
  end
end

os.exit(lu.LuaUnit.run())
