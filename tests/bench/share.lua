-- The oracle's share: how much of what could be had does a policy get? By the table of costs, without the machine's
-- noise and without the time of pages: plain decoding, policies, and the most that a chain and a tree could reach that
-- knew what comes.
--   dtrun run tests/bench/share.lua [--temp 0.8] [--arms "rate, linear K=2, dynatree narrow"] [--prompts 20]
--     [--sets scripts/prompts/tasks/*.jsonl] [--questions FILE.jsonl] [--cost-table FILE] [-m TARGET -md DRAFT]
--
-- The first arm is the one that counts; the best of the others is said beside it. The bounds: at each place of the text
-- the draft model is led along the tokens that come, which tells how deep its likeliest guess (a chain) or one of its
-- candidates (a tree) stays right, and so does a copy of what followed the end of the text before, which costs no pass.
-- The bound is the cheapest way through the text in iterations of right guesses only, found by dynamic programming: no
-- such policy can be faster, but for costs that the table lacks.
local dt = require "dt"
local by_table = dofile((arg[0]:match "^(.*/)" or "./") .. "by_table.lua")

local opts = dt.args {
  costs = "table",
  doc = "what policies reach of what could be reached, by the table of costs",
  options = {
    { "prompts", 20, min = 1, max = 20, doc = "texts to go on with, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "so many texts of each of these sets instead of novels" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) instead of novels, put in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 400, doc = "tokens of each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "arms", "rate, linear K=1, linear K=2, linear K=4, dynatree, dynatree narrow, hf_assisted, prompt_lookup",
      doc = "policies, each with a preset or parameters" },
    { "no_bounds", false, doc = "without the bounds, for which the draft model works long" },
    { "cost_table", nil, type = "string", doc = "a table of costs (calibrate --json) instead of a measured one" },
  },
}
local DEEPEST, CANDIDATES = 12, 32 -- guesses of an iteration; ranks of the tree's bound

local pair = by_table.load(opts)
local costs, times = dt.calibrate(pair) -- or a failure
dt.check(costs, times)
local file = os.tmpname()

-- What follows is known: it leads the draft model along. Told at each place: r1, r2, ..: the rank of the token that
-- comes among the candidates, 0: none; and how many tokens a copy would have right.
local LEAD = [[
local policy = require "dt.policy"
local Lead = policy.define { name = "lead", uses = { draft = "optional" } }
local TEXT <const> = { %s }
function Lead:draft(tree)
  local seq, u = tree.seq, 0
  self.first = self.first or seq:length()
  local at, right = seq:match(), 0
  local done = seq:length() - self.first
  local function comes(i) return TEXT[done + i] end
  while at and right < %d and comes(right + 1) do
    local i = at + right + 1
    local copied = i <= seq:length() and seq:token(i) or comes(i - seq:length())
    if copied ~= comes(right + 1) then break end
    right = right + 1
  end
  seq:log("copy", right)
  for depth = 1, seq.drafts and math.min(%d, tree:depth_room()) or 0 do
    if not comes(depth) then break end
    tree:draft_step(u)
    local rank = tree:rank(u, comes(depth)) or 0
    seq:log("r" .. depth, rank)
    if rank == 0 then break end
    u = tree:add(u, comes(depth))
  end
  if tree:size() > 0 then tree:keep(0) end
end
return Lead]]

local function draw(temp, each) return temp > 0 and each or 0 end

-- The least milliseconds to say n tokens after `before`, where at[i] tells of the place before token i.
local function bound(at, n, before, most_rank)
  local least = { [n + 1] = 0 }
  for i = n, 1, -1 do
    local context, log, ms = before + i - 1, at[i] or {}, 0
    local best, drafted = math.huge, 0
    for depth = 0, math.min(DEEPEST, n - i) do
      if depth > 0 then
        local rank = log["r" .. depth] or 0
        if depth > (log.copy or 0) then
          if rank == 0 or rank > most_rank then break end
          ms = ms + (drafted == 0 and costs:first(context) or costs:draft(1, context))
            + draw(opts.temp, times.draft_draw)
          drafted = drafted + 1
        end
      end
      local rows = depth + 1
      local whole = ms + costs:target(rows, context) + rows * draw(opts.temp, times.target_draw)
      best = math.min(best, whole + least[i + rows])
    end
    least[i] = best
  end
  return least[1]
end

local arms = by_table.arms("ar, " .. opts.arms)
for _, arm in ipairs(arms) do arm.ms, arm.least, arm.iterations = 0, math.huge, 0 end
local chain, tree, texts = 0, 0, by_table.texts(opts)

-- A run of a text, traced: its result, the time by the table, and its iterations.
local function run(request, prefix, seed)
  local options = { prompt = prefix, tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = seed,
                    trace = file }
  for key, value in pairs(request) do options[key] = value end
  pair:forget()
  local result = dt.check(pair:generate(options))
  return result, by_table.ms(file, costs, times, opts.temp)
end

for p, text in ipairs(texts) do
  local prefix, plain, plain_ms = dt.check(pair:prefix(text)), nil, 0
  for _, arm in ipairs(arms) do
    local result, ms = run({ policy = arm.policy, preset = arm.preset, params = arm.params }, prefix, p)
    if arm.policy == "ar" then plain, plain_ms = result, ms end
    assert(result.stats.output_hash == plain.stats.output_hash, arm.label .. " changed the output")
    arm.ms, arm.iterations = arm.ms + ms, arm.iterations + result.stats.iterations
    arm.least = math.min(arm.least, plain_ms / ms)
  end
  if not opts.no_bounds then
    local source = LEAD:format(table.concat(plain.tokens, ","), DEEPEST, DEEPEST)
    local _, _, iterations = run({ policy = "lead.lua", source = source }, prefix, p)
    local at, before = {}, plain.prompt_tokens
    for i, iteration in ipairs(iterations) do at[i] = iteration.log end
    assert(#at == #plain.tokens, "the text that was led along is another")
    chain = chain + bound(at, #at, before, 1)
    tree = tree + bound(at, #at, before, CANDIDATES)
  end
end
os.remove(file)

print(("%d texts of %d tokens, temperature %g, %s with %s, %s, %d threads, by the table; outputs equal"):format(#texts,
  opts.tokens, opts.temp, pair.target.path, pair.draft and pair.draft.path or "no draft model", pair.backend,
  pair.threads))
local plain, best = arms[1].ms, nil
for i = 2, #arms do
  local arm = arms[i]
  local shares = opts.no_bounds and "" or (", %.1f %% of the chain's bound, %.1f %% of the tree's"):format(
    100 * chain / arm.ms, 100 * tree / arm.ms)
  print(("%-20s %.3fx plain (least of a text %.3fx), %.2f tokens per iteration%s"):format(arm.label, plain / arm.ms,
    arm.least, #texts * opts.tokens / arm.iterations, shares))
  if i > 2 and (not best or arm.ms < best.ms) then best = arm end
end
if best then print(("%s over the best other, %s: %.3fx"):format(arms[2].label, best.label, best.ms / arms[2].ms)) end
if not opts.no_bounds then
  print(("bounds: a chain %.3fx plain, a tree %.3fx"):format(plain / chain, plain / tree))
end
