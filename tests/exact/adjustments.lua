-- Logit adjustments are exact: with random penalties, biases, bans, minimum lengths and grammars, greedy and sampled,
-- every policy generates the tokens of plain decoding with bit-identical log-probabilities; alone, in batches, with a
-- window, and with a draft head.
-- dtrun run tests/exact/adjustments.lua [--settings 200] [--tokens 24]
local dt = require "dt"

local opts = dt.args {
  doc = "compares adjusted tokens and log-probabilities of every policy with those of plain decoding",
  options = {
    { "settings", 200, min = 1, max = 100000, doc = "random settings" },
    { "tokens", 24, short = "n", min = 2, max = 1000, doc = "tokens of each text" },
    { "first", 1, min = 1, max = 100000, doc = "the setting to begin with" },
    { "head", nil, type = "string", doc = "a draft head for the target, which drafts in a second round" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local POLICIES = { "linear", "dynatree", "rate", HERE .. "hostile/random_trees.lua", HERE .. "hostile/keep_random.lua",
                   HERE .. "hostile/forced.lua",
                   "suffix" }

local texts = {}
for i = 1, 4 do
  local folder = i % 2 == 1 and "wikitext2" or "novels"
  local file = assert(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE, folder, i)))
  texts[i] = file:read "a":sub(1, 300 + 50 * i)
  file:close()
end

local GRAMMARS = {
  'root ::= ([a-z ]{1,9} [,.;])+ "!"', 'root ::= ([0-9]+ " "? [a-z]* "\\n"?)+', 'root ::= [^\\n"]{8,40} ("\\n" root)?',
  [[root ::= "{" pair (", " pair)* "}"
    pair ::= "\"" [a-zA-Z ]+ "\": " (root | "[" [0-9 ,]* "]" | "true" | "null")]],
}

local function pick(list) return list[math.random(#list)] end

-- The options of the i-th setting; nil: not used.
local function setting_of(i, vocab)
  math.randomseed(i)
  local bias = {}
  for k = 1, math.random(0, 4) do
    bias[k] = { math.random(0, math.min(vocab - 1, 600)), pick { false, 3, -2.5, 0.5 } }
  end
  local tokens = opts.tokens
  local setting = {
    repeat_penalty = pick { 1.3, 1.1, 0.8, false } or nil, presence_penalty = pick { 0.5, -0.3, false } or nil,
    frequency_penalty = pick { 0.2, 1.5, -0.1, false } or nil, logit_bias = bias,
    min_tokens = pick { math.random(tokens), false, false } or nil,
    temp = pick { 0, 0, 0.7, 1.2 }, top_k = pick { 40, false, false } or nil, top_p = pick { 0.9, false, false } or nil,
    min_p = pick { 0.03, false, false, false } or nil, seed = i, tokens = tokens, logprobs = pick { 0, 3, 20 },
    window = pick { 24, false, false } or nil, stop = pick { { "\n", " the" }, false, false } or nil,
  }
  if not setting.min_tokens then setting.grammar = pick { GRAMMARS[i % #GRAMMARS + 1], false } or nil end
  return setting
end

local runs, mistakes, accepted, adjusted = 0, 0, 0, 0

local function wrong(label, i, what)
  mistakes = mistakes + 1
  print(("  WRONG: setting %d, %s: %s"):format(i, label, what))
end

local function compare(label, i, result, plain)
  runs = runs + 1
  accepted = accepted + result.stats.accepted
  if dt.json.encode(result.tokens) ~= dt.json.encode(plain.tokens) then wrong(label, i, "other tokens") end
  if dt.json.encode(result.logprobs) ~= dt.json.encode(plain.logprobs) then
    wrong(label, i, "other log-probabilities")
  end
  if result.text ~= plain.text or result.finish_reason ~= plain.finish_reason then
    wrong(label, i, "another end")
  end
end

local function asked(setting, more)
  local t = {}
  for key, value in pairs(setting) do t[key] = value end
  for key, value in pairs(more) do t[key] = value end
  return t
end

local function check(pair, policies, label)
  for i = opts.first, opts.first + opts.settings - 1 do
    local setting, plain = setting_of(i, pair.target.vocab), {}
    for p, text in ipairs(texts) do
      plain[p] = assert(pair:generate(asked(setting, { policy = "ar", prompt = text, seed = i + p - 1 })))
    end
    local free = assert(pair:generate {
      policy = "ar", prompt = texts[1], tokens = opts.tokens, temp = setting.temp, seed = i, top_k = setting.top_k,
      top_p = setting.top_p, min_p = setting.min_p, window = setting.window, stop = setting.stop,
    })
    if free.stats.output_hash ~= plain[1].stats.output_hash then adjusted = adjusted + 1 end
    for c, policy in ipairs(policies) do
      local p = (i + c) % #texts + 1
      local more = { policy = policy, prompt = texts[p], seed = i + p - 1 }
      compare(label .. policy, i, assert(pair:generate(asked(setting, more))), plain[p])
    end
    local policy = pick(policies)
    local batch = asked(setting, { policy = policy, prompts = texts, slots = 1 + i % 4 })
    local results, failures = assert(pair:generate_batch(batch))
    assert(next(failures) == nil, select(2, next(failures)))
    for p, result in ipairs(results) do compare(label .. "batch of " .. policy, i, result, plain[p]) end
  end
end

local pair = assert(dt.load(opts.load))
check(pair, POLICIES, "")
local drafts = pair.draft
pair:close()
if opts.head then
  local load = asked(opts.load, { draft = opts.head })
  local with_head = assert(dt.load(load))
  check(with_head, { "linear", "eagle2", HERE .. "hostile/random_trees.lua" }, "head, ")
  with_head:close()
end
print(("%d settings, %d texts compared, %d mistakes; %d guesses accepted; adjustments gave another text in %d"):format(
  opts.settings, runs, mistakes, accepted, adjusted))
os.exit(mistakes == 0 and (accepted > 0 or not drafts) and adjusted > opts.settings / 2)
