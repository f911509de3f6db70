-- Random policies (random_policy.lua), alone and in batches, greedy and sampled: whatever a policy does to its trees
-- must not change the tokens. It may only fail with an error of the policy, after some first tokens of plain decoding.
-- dtrun run tests/exact/random_policies.lua [--policies 300] [--seed 1] [--loaded 25]
--
-- Policy i has the seed --seed + i - 1, so --policies 1 --seed S repeats that of seed S. Most run on scripted pairs;
-- those whose seed divides by --loaded on a loaded one, which --target, --draft, --weights and --activations choose.
local dt = require "dt"

local opts = dt.args {
  doc = "compares the tokens of random policies with plain decoding's",
  options = {
    { "policies", 300, min = 1, doc = "policies" },
    { "seed", 1, doc = "of the first policy" },
    { "loaded", 25, min = 1, doc = "number of runs of one policy on the loaded pair" },
    { "show", false, doc = "print each policy before it runs" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local random_policy = dofile(HERE .. "random_policy.lua")
local costs = dofile(HERE .. "costs.lua")
local TEXT = "It was a dark night and the old man went down to the harbour to look for the ship, the ship that was gone"

local load = { costs = costs }
for name, value in pairs(opts.load) do load[name] = value end
local loaded = dt.check(dt.load(load))
local PAIRS = {
  dt.fake { vocab = 50, context = 300, costs = costs },
  dt.fake { vocab = 4, context = 1500, costs = costs },
  dt.fake { vocab = 300, context = 1200, draft_context = 700, costs = costs },
  dt.fake { vocab = 40, context = 120, draft_context = 40, eos = 7, costs = costs },
  dt.fake { vocab = 1, context = 20, costs = costs },
  dt.fake { vocab = 9, context = 3, costs = costs },
}
do -- one with files to look things up in
  local path, ids = os.tmpname(), {}
  for i = 1, 2000 do ids[i] = i * i % 37 % 20 end
  local file = assert(io.open(path, "wb"))
  file:write(" ", table.concat(ids, " "))
  assert(file:close())
  PAIRS[#PAIRS + 1] = dt.check(dt.fake { vocab = 20, context = 700, corpus = path, costs = costs })
  os.remove(path)
end

local function chance(p) return math.random() < p end

local function random_prompt(pair)
  if pair == loaded then return TEXT:sub(1, math.random(1, #TEXT)) end
  local ids = {}
  for i = 1, math.random(1, math.min(pair.target.context - 1, chance(0.2) and 200 or 20)) do
    ids[i] = math.random(0, pair.target.vocab - 1)
  end
  return " " .. table.concat(ids, " ")
end

-- How a policy is run. Where many tokens are wanted the tree can be deep; policies end such a run soon.
local function random_request(pair)
  local deep = pair ~= loaded and chance(0.3)
  local request = { tokens = deep and 1000 or math.random(1, pair == loaded and 24 or 100), ignore_eos = chance(0.5),
                    seed = math.random(1, 1 << 30), stop = chance(0.2) and { "33", " 1 2" } or nil }
  if chance(0.5) then
    request.temp, request.coupled = ({ 0.001, 0.5, 1.0, 3.0 })[math.random(4)], chance(0.7)
    request.top_k = chance(0.3) and math.random(1, 60) or nil
    request.top_p = chance(0.3) and math.random(1, 100) / 100 or nil
    request.min_p = chance(0.3) and math.random(0, 100) / 100 or nil
  end
  if pair == loaded and chance(0.7) then
    request.window, request.sinks = math.random(1, 60), chance(0.7) and math.random(9) or nil
  end
  return request
end

-- What a policy, or its run, may use: how many did.
local KINDS = { memory = "memory = true", corpus = "corpus = true", candidates = "target = ", lists = "self.L" }
local used = { memory = 0, corpus = 0, candidates = 0, lists = 0, windows = 0, prefixes = 0 }

-- A prompt as a policy's run takes it: the text, or its pass done before, by no drafter.
local function done_before(pair, text, request)
  if not chance(0.25) then return text end
  used.prefixes = used.prefixes + 1
  return assert(pair:prefix(text, { window = request.window, sinks = request.sinks }))
end

local function with(request, more)
  local new = {}
  for _, t in ipairs { request, more } do
    for key, value in pairs(t) do new[key] = value end
  end
  return new
end

-- What is wrong with a sequence that gave this result, or this failure: nil where nothing is.
local function wrong(expected, result, failure)
  if failure and failure.kind ~= "policy" then
    return ("it fails with kind %s: %s"):format(failure.kind, failure.message)
  end
  local tokens = result and result.tokens or {}
  for i = 1, math.max(#tokens, failure and 0 or #expected.tokens) do
    if tokens[i] ~= expected.tokens[i] then
      return ("token %d is %s, not %s"):format(i, tokens[i], expected.tokens[i])
    end
  end
  if failure then return nil end
  if result.text ~= expected.text then return ("the text is %q, not %q"):format(result.text, expected.text) end
  if result.finish_reason ~= expected.finish_reason then
    return ("it ends by its %s, not its %s"):format(result.finish_reason, expected.finish_reason)
  end
end

local sum = { ended = 0, batches = 0, tokens = 0, drafted = 0, accepted = 0 }

local function count(result, failure)
  if failure then sum.ended = sum.ended + 1 end
  if not result then return end
  sum.tokens = sum.tokens + #result.tokens
  sum.drafted, sum.accepted = sum.drafted + result.stats.drafted, sum.accepted + result.stats.accepted
end

local function request_of(source) return { source = source, params = chance(0.3) and { L = "1,4" } or nil } end

local function run_alone(pair, source, request)
  local prompt = random_prompt(pair)
  local expected = assert(pair:generate(with(request, { policy = "ar", prompt = prompt })))
  prompt = done_before(pair, prompt, request)
  local result, failure = pair:generate(with(with(request, request_of(source)), { prompt = prompt }))
  result = result or failure.partial
  count(result, failure)
  return wrong(expected, result, failure)
end

local function run_batch(pair, source, request)
  local prompts, expected, mistake = {}, {}, nil
  for i = 1, math.random(2, 6) do
    prompts[i] = random_prompt(pair)
    local alone = { policy = "ar", prompt = prompts[i], seed = request.seed + i - 1 }
    expected[i] = assert(pair:generate(with(request, alone)))
    prompts[i] = done_before(pair, prompts[i], request)
  end
  local function on_done(i, result, failure)
    count(result, failure)
    local what = wrong(expected[i], result, failure)
    if what then mistake = ("sequence %d of %d: %s"):format(i, #prompts, what) end
  end
  sum.batches = sum.batches + 1
  local slots = math.random(1, #prompts)
  local done, failure = pair:generate_batch(with(with(request, request_of(source)), { prompts = prompts,
                                            slots = slots, on_done = on_done }))
  return mistake or not done and wrong(nil, nil, failure)
end

local start, mistakes = dt.clock(), 0
for seed = opts.seed, opts.seed + opts.policies - 1 do
  math.randomseed(seed, 1)
  local pair = seed % opts.loaded == 0 and loaded or PAIRS[math.random(#PAIRS)]
  local run, request, next_seed = chance(0.4) and run_batch or run_alone, random_request(pair), math.random(1 << 30)
  local source = random_policy(seed, pair.target.vocab)
  for kind, text in pairs(KINDS) do used[kind] = used[kind] + (source:find(text, 1, true) and 1 or 0) end
  used.windows = used.windows + (request.window and 1 or 0)
  if opts.show then print(("-- the policy of the seed %d\n%s"):format(seed, source)) end
  math.randomseed(next_seed)
  local what = run(pair, source, request)
  if what then
    mistakes = mistakes + 1
    print(("WRONG: the policy of the seed %d, vocabulary %d, context %d%s: %s\n%s"):format(seed, pair.target.vocab,
      pair.target.context, run == run_batch and ", in a batch" or "", what, source))
  end
end
print(("%d policies from the seed %d in %.1f s, %d of them in batches: %d tokens, %d nodes verified, %d accepted; "
  .. "%d sequences ended by their policy: %d mistakes"):format(opts.policies, opts.seed, (dt.clock() - start) / 1000,
  sum.batches, sum.tokens, sum.drafted, sum.accepted, sum.ended, mistakes))
print(("%d policies used memory, %d a corpus, %d the target's candidates, %d lists of its parameters, %d a window; "
  .. "%d prompts were a prefix"):format(used.memory, used.corpus, used.candidates, used.lists, used.windows,
  used.prefixes))
os.exit(mistakes == 0)
