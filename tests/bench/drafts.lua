-- Drafts of one target in turn: a small model, a head, the target's own first layers, none (copies alone), or two of
-- them together, as A,B. Of each the price of a guess and, under some policies, speed over plain decoding and tokens
-- per iteration.
--   dtrun run tests/bench/drafts.lua [-m TARGET -md DRAFT] [--other DRAFT ...] [--policies "linear rate"] [--temp 0.8]
--     [--questions FILE.jsonl]
--
-- Every arm runs a text before the next text comes, in an order that rotates; the prompt pass is left out. A text's
-- ratios stood side by side, and their median is shown. The texts are novels, or prompts as they stand in a file. The
-- price is that of a draft pass over one row in target passes over one, by a table of costs.
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  costs = "table",
  doc = "drafts of one target under some policies, beside plain decoding",
  options = {
    { "other", many = "DRAFT", doc = "other drafts: files, exit:N, A,B for two, none (without)" },
    { "policies", "linear eagle2 dynatree rate", type = "string", doc = "policies" },
    { "questions", nil, type = "string", doc = "a file of prompts (.jsonl) instead of novels" },
    { "prompts", 8, min = 1, max = 20, doc = "texts to go on with, each with its own seed" },
    { "tokens", 150, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local CONTEXT = 256 -- of the price

local function base(path) return path:match "[^/]*$" end

local first = opts.load.draft or "models/mini-draft"
local drafts = { opts.load.draft2 and first .. "," .. opts.load.draft2 or first, table.unpack(opts.other) }

-- Of each draft of the pair, as text.
local function price(pair)
  local costs, list = dt.check(dt.calibrate(pair)), {}
  for m = 1, costs:models() do
    list[m] = ("%.3f"):format(costs:draft(1, CONTEXT, 1, m) / costs:target(1, CONTEXT))
  end
  return #list > 0 and table.concat(list, ", ") or "0"
end

local arms = {}
for _, draft in ipairs(drafts) do
  local one, two = draft:match "^(.*),(.*)$"
  opts.load.draft, opts.load.draft2 = draft ~= "none" and (one or draft), two
  local pair = dt.check(dt.load(opts.load))
  if #arms == 0 then arms[1] = { pair = pair, policy = "ar", draft = "", price = "0" } end
  for policy in opts.policies:gmatch "%S+" do
    local arm = { pair = pair, policy = policy, draft = two and base(one) .. "," .. base(two) or base(draft),
                  price = price(pair) }
    if pair.draft or pair:generate { policy = policy, prompt = "a", tokens = 1 } then arms[#arms + 1] = arm end
  end
end
for _, arm in ipairs(arms) do arm.ratios, arm.iterations = {}, 0 end

local function read_texts()
  local list = {}
  if opts.questions then
    for line in io.lines(opts.questions) do
      if #list < opts.prompts then list[#list + 1] = assert(dt.json.decode(line)).prompt end
    end
    return list
  end
  for p = 1, opts.prompts do
    local file <close> = assert(io.open(("%s../../scripts/prompts/novels/%02d.txt"):format(HERE, p), "rb"))
    list[p] = file:read "a"
  end
  return list
end

local function run(arm, text, seed)
  arm.pair:forget()
  return dt.check(arm.pair:generate {
    policy = arm.policy, prompt = text, tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = seed,
  }).stats
end

local function time_of(stats)
  local t = stats.time_ms
  return t.draft + t.verify + t.commit + t.policy + t.other
end

local texts = read_texts()
for _, arm in ipairs(arms) do run(arm, texts[1], 0) end -- warms up
for p, text in ipairs(texts) do
  local ms, hash = {}, nil
  for i = 1, #arms do
    local k = (i + p) % #arms + 1
    local stats = run(arms[k], text, p)
    hash = hash or stats.output_hash
    assert(stats.output_hash == hash, arms[k].policy .. " changed the output")
    ms[k], arms[k].iterations = time_of(stats), arms[k].iterations + stats.iterations
  end
  for k, arm in ipairs(arms) do arm.ratios[p] = ms[1] / ms[k] end
end

print(("%d texts, %d tokens, temperature %g, %s, %d threads; outputs equal"):format(
  #texts, opts.tokens, opts.temp, arms[1].pair.backend, arms[1].pair.threads))
for _, arm in ipairs(arms) do
  table.sort(arm.ratios)
  print(("%-10s %-24.24s price %s, %.3fx plain [%.3f, %.3f], %.2f tokens per iteration"):format(
    arm.policy, arm.draft, arm.price, statistics.quantile(arm.ratios, 0.5), arm.ratios[1], arm.ratios[#texts],
    #texts * opts.tokens / arm.iterations))
end
