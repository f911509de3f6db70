-- --window and --sinks: what the target sees is what transformers is shown by a mask (tests/golden/make_window.py), and
-- every policy's tokens are then those of plain decoding with the same window.
local lu = require "luaunit"
local dt = require "dt"

local ROOT = arg[0]:match "^(.*/)tests/lua/" or "./"

local function read(path)
  local file = assert(io.open(ROOT .. path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function prompt_of(name) return read(("scripts/prompts/%s.txt"):format(name)) end

local target = assert(dt.load {})

TestWindow = {}

for i, case in ipairs(assert(dt.json.decode(read "tests/golden/window.json")).cases) do
  TestWindow[("test_transformers_%d_%s"):format(i, case.model)] = function()
    local pair = case.model == "mini-target" and target
      or assert(dt.load { target = ROOT .. "models/" .. case.model, draft = false })
    local result = assert(pair:generate { policy = "ar", prompt = prompt_of(case.prompt), tokens = #case.tokens,
      window = case.window, sinks = case.sinks > 0 and case.sinks or nil, ignore_eos = true })
    lu.assertEquals(result.tokens, case.tokens)
    lu.assertEquals(result.window, { last = case.window, sinks = case.sinks })
    lu.assertTrue(#case.tokens >= 8, "too few to tell")
  end
end

local function tokens_of(how)
  local request = { policy = "ar", prompt = prompt_of "novels/02", tokens = 24, ignore_eos = true }
  for key, value in pairs(how) do request[key] = value end
  return assert(target:generate(request)).tokens
end

-- A window as long as the text, or one that leaves out one token: the prompt has 315.
function TestWindow.test_its_bounds()
  local all = tokens_of {}
  lu.assertEquals(tokens_of { window = 315 + 24 }, all)
  lu.assertEquals(tokens_of { window = 1, sinks = 315 + 24 }, all)
  lu.assertNotEquals(tokens_of { window = 20, sinks = 4 }, all)
  lu.assertNotEquals(tokens_of { window = 1 }, all)
  local logits = {} -- a token more or less is seen
  for _, window in ipairs { 313, 314, 315 } do
    local source = "local P = require('dt.policy').define { name = 'x', uses = { draft = false, target = 2 } }\n"
      .. "function P:observe(_, out) error(('<%.17g>'):format(select(2, out:candidates(0, 1))), 0) end return P"
    local _, failure = target:generate { policy = "x", source = source, prompt = prompt_of "novels/02",
                                            window = window }
    logits[#logits + 1] = failure.message:match "<.*>"
  end
  lu.assertNotEquals(logits[1], logits[2])
  lu.assertNotEquals(logits[2], logits[3])
end

function TestWindow.test_a_prefix_belongs_to_its_window()
  local prefix = assert(target:prefix(prompt_of "novels/02", { window = 20, sinks = 4 }))
  lu.assertEquals(tokens_of { prompt = prefix, window = 20, sinks = 4 }, tokens_of { window = 20, sinks = 4 })
  for _, how in ipairs { {}, { window = 20 }, { window = 21, sinks = 4 } } do
    how.policy, how.prompt = "ar", prefix
    local result, failure = target:generate(how)
    lu.assertNil(result)
    lu.assertEquals(failure.message, "the prefix was made with another window: 20 and 4 sinks")
  end
end

function TestWindow.test_what_is_wrong_is_said()
  local fake <close> = assert(dt.fake { vocab = 12 })
  local function fails(pair, how, kind, text)
    how.policy, how.prompt = "ar", " 1"
    local result, failure = pair:generate(how)
    lu.assertNil(result)
    lu.assertEquals({ failure.kind, failure.message }, { kind, text })
  end
  fails(fake, { window = 5 }, "input", "window: the backend fake does not support it (--backend cpu does)")
  fails(target, { sinks = 4 }, "input",
        "sinks: 4 without a window: give --window, the number of most recent tokens that are seen")
  for _, name in ipairs { "window", "sinks" } do
    lu.assertErrorMsgContains(("generate: %s: 1.5 is not an integer"):format(name), target.generate, target,
                              { policy = "ar", prompt = " 1", [name] = 1.5 })
  end
  lu.assertErrorMsgContains("generate: window: 0 is out of range", target.generate, target,
                            { policy = "ar", prompt = " 1", window = 0 })
  fails(target, { window = -1 }, "input", "window: -1 and sinks: 0 are out of range: at least 0")
end

-- The likeliest guess of a draft after a prompt, and its probability.
local function guess_of(pair, prompt)
  local source = "local P = require('dt.policy').define { name = 'x', uses = { draft = true } }\n"
    .. "function P:draft(tree) tree:draft_step(0) local u = tree:branch(0, 1)\n"
    .. "error(('<%d %.6g>'):format(tree:token(u), tree:p(u)), 0) end return P"
  local _, failure = pair:generate { policy = "x", source = source, prompt = prompt }
  return failure.message:match "<(%d+) (.*)>"
end

-- A draft with a window guesses what the same model generates as a target with that window and four sinks.
function TestWindow.test_a_window_of_the_draft()
  local model = ROOT .. "models/mini-draft"
  local alone <close> = assert(dt.load { target = model, draft = false })
  local _, p_of_all = guess_of(target, prompt_of "novels/02")
  for _, window in ipairs { 1, 12, 20, 100, 4000 } do
    local pair <close> = assert(dt.load { target = ROOT .. "models/mini-target", draft = model, draft_window = window })
    lu.assertEquals(pair.draft_window, ("%d+4"):format(window))
    for _, name in ipairs { "novels/02", "novels/13", "wikitext2/09" } do
      local text = prompt_of(name)
      local first = assert(alone:generate { policy = "ar", prompt = text, tokens = 1, window = window, sinks = 4,
                                            ignore_eos = true }).tokens[1]
      lu.assertEquals(guess_of(pair, text), ("%d"):format(first))
    end
    local _, p = guess_of(pair, prompt_of "novels/02")
    if window < 4000 then lu.assertNotEquals(p, p_of_all) else lu.assertEquals(p, p_of_all) end
    for _, policy in ipairs { "linear", "dynatree" } do
      local result = assert(pair:generate { policy = policy, prompt = prompt_of "novels/02", tokens = 24,
                                            ignore_eos = true })
      lu.assertEquals(result.tokens, tokens_of {})
      lu.assertEquals(result.draft_window, pair.draft_window)
    end
  end
  local pair, failure = dt.load { draft_window = -1 }
  lu.assertNil(pair)
  lu.assertEquals(failure.message, "draft_window: -1 is out of range: at least 1")
end

os.exit(lu.LuaUnit.run())
