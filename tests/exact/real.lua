-- A real model drafts for itself, and every policy gives the tokens of plain decoding; its chats have the ids that
-- transformers gives them.  dtrun run tests/exact/real.lua
-- Without options it uses the model from scripts/get-model smollm2; without that model the test is skipped (exit status
-- 77). The draft is the target itself and guesses right, so that deep trees are accepted, too. Prompts are chats and
-- running text. -m and -md name another pair, --questions a file of questions (JSON lines; as ChatML). --all compares
-- every policy of the matrix (the hostile ones, whose trees are large, on two prompts):
-- dtrun run tests/exact/real.lua -m 1.5b.gguf -md 0.5b.gguf --questions scripts/prompts/code.jsonl --all
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens of policies on a real model with plain decoding's",
  options = {
    { "prompts", 10, min = 1, max = 100, doc = "prompts" },
    { "tokens", 24, short = "n", min = 2, max = 1000, doc = "tokens generated from each" },
    { "questions", nil, type = "string", doc = "a file of questions, a line of JSON each, in place of ours" },
    { "all", false, doc = "every policy of the matrix" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local MODEL = HERE .. "../../models/SmolLM2-135M-Instruct.Q4_1.gguf"

-- Policies with `prompts` get that number of prompts and few tokens: their trees are large, and rows are expensive
-- here.
local POLICIES = {
  { policy = "linear" },
  { policy = "prompt_lookup", seldom = true },
  { policy = "rate" },
  { policy = "token_recycling", params = { total = 24 } },
  { policy = "caddtree" },
  { policy = "dynatree" },
  { policy = "random_trees", params = { nodes = 8, vocab = 49152 }, hostile = true },
  { policy = "duplicates", hostile = true },
  { policy = "empty_at_random", hostile = true },
  { policy = "rollbacks", hostile = true },
  { policy = "keep_random", hostile = true, prompts = 2, tokens = 12 },
  { policy = "one_level", hostile = true, prompts = 1, tokens = 6 },
  { policy = "past_the_room", hostile = true, prompts = 1, tokens = 6 },
}

local QUESTIONS = {
  "Write a Python function that reverses a list.", "What is the capital of France?", "Zähle bis zehn.",
  "Explain rain to a child, in three sentences.", "List the numbers from 20 down to 1.",
}

local function chat(question)
  return ("<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"):format(question)
end

local function read_prompts()
  local prompts = {}
  if opts.questions then
    for line in assert(io.lines(opts.questions)) do prompts[#prompts + 1] = chat(dt.json.decode(line).prompt) end
    return table.move(prompts, 1, opts.prompts, 1, {})
  end
  for i, question in ipairs(QUESTIONS) do
    prompts[#prompts + 1] = chat(question)
    local file = assert(io.open(("%s../../scripts/prompts/wikitext2/%02d.txt"):format(HERE, i), "rb"))
    prompts[#prompts + 1] = file:read(300)
    file:close()
  end
  return table.move(prompts, 1, opts.prompts, 1, {})
end

local load = opts.load
if not load.target then
  local file = io.open(MODEL, "rb")
  if not file then
    print "skipped: no SmolLM2; scripts/get-model smollm2 brings it"
    os.exit(77)
  end
  file:close()
  load.target, load.draft = MODEL, MODEL
end
load.ctx, load.costs = load.ctx or 512, dofile(HERE .. "costs.lua")

local pair, mistakes = assert(dt.load(load)), 0
local prompts, plain = {}, {}

local function run(case, p, tokens)
  local result, err = pair:generate {
    policy = case.hostile and ("%shostile/%s.lua"):format(HERE, case.policy) or case.policy, params = case.params,
    preset = case.preset,
    prompt = prompts[p], tokens = tokens, ignore_eos = true, seed = p, temp = opts.temp,
  }
  return result or error(("%s, prompt %d: %s"):format(case.policy, p, err.message))
end

-- tests/golden/make_chat.py: texts of conversations with the ids that transformers gives them.
local function check_chats()
  local file = assert(io.open(HERE .. "../golden/chat/golden.json", "rb"))
  local golden, n = dt.json.decode(file:read "a"), 0
  file:close()
  for _, template in ipairs(golden.templates) do
    for _, case in ipairs(template.model == "smollm2" and template.cases or {}) do
      local ids = assert(pair:encode(case.text))
      n = n + 1
      if table.concat(ids, " ") ~= case.ids then
        mistakes = mistakes + 1
        print("  WRONG: the ids of " .. case.text)
      end
    end
  end
  print(("  %d chats encoded"):format(n))
end

if load.target == MODEL then check_chats() end
for p, text in ipairs(read_prompts()) do
  prompts[p] = assert(pair:prefix(text))
  plain[p] = run({ policy = "ar" }, p, opts.tokens).tokens
end
local cases = POLICIES
if opts.all then
  cases = dofile(HERE .. "policies.lua")
  for _, case in ipairs(cases) do
    if case.policy:find "/hostile/" then case.prompts, case.tokens = 2, 12 end
  end
end
for _, case in ipairs(cases) do
  local tokens, iterations, accepted = 0, 0, 0
  for p = 1, math.min(case.prompts or #prompts, #prompts) do
    local result = run(case, p, math.min(case.tokens or opts.tokens, opts.tokens))
    for i, token in ipairs(result.tokens) do
      if token ~= plain[p][i] then
        mistakes = mistakes + 1
        print(("  WRONG: %s, prompt %d: token %d is %d, not %d"):format(case.policy, p, i, token, plain[p][i]))
        break
      end
    end
    tokens, iterations = tokens + #result.tokens, iterations + result.stats.iterations
    accepted = accepted + result.stats.accepted
  end
  print(("  %-24s %5d tokens %5d iterations %6.2f tokens/iteration"):format(case.label or case.policy, tokens,
    iterations, tokens / iterations))
  if accepted == 0 and not case.seldom and case.policy ~= "ar" then
    mistakes = mistakes + 1
    print("  WRONG: " .. case.policy .. ": nothing was ever accepted")
  end
end
print(mistakes == 0 and "all tokens equal plain decoding's" or mistakes .. " mistakes")
os.exit(mistakes == 0)
