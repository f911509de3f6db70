-- Searches a policy's parameters for the pair and machine at hand, and keeps them as its preset `tuned`
local complain = require "dt.complain"
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"
local tune = require "dt.tune"

local opts = dt.args {
  doc = [[
Draws settings from the ranges of the policy's parameters (tune= in its definition narrows them), keeps the better half
on more and more prompts, then looks near the best. The result is compared with plain decoding and with the defaults on
prompts that the search did not see, and kept in the user's folder: dtrun POLICY --preset tuned.]],
  rest = "POLICY",
  options = {
    { "settings", 32, min = 2, max = 4096, doc = "settings drawn at first; then half as many near the best" },
    { "prompt", many = "FILE", doc = "prompts: text files; every second one is held out (default: dtrun's own)" },
    { "prompts", many = "FILE.jsonl", doc = 'prompts: lines of {"id": .., "prompt": ".."}' },
    { "chars", 800, min = 1, doc = "take the first characters of each prompt" },
    { "tokens", 100, short = "n", min = 2, max = 2147483647, doc = "new tokens of each run" },
    { "repeats", 3, min = 1, doc = "runs of each finalist and prompt; the fastest counts" },
    { "seed", 1, min = 1, doc = "of the settings drawn" },
  },
}
local FINALISTS = 6

-- Without prompts given: 12 of each kind that come with the source, in an order that holds out half of each kind.
local function own_prompts()
  local folder, files = (arg[0]:match "^(.*/)" or "./") .. "../tests/data/prompts/", {}
  for i = 1, 12 do
    local sets = i % 2 == 1 and { "novels", "wikitext2" } or { "wikitext2", "novels" }
    for _, set in ipairs(sets) do files[#files + 1] = ("%s%s/%02d.txt"):format(folder, set, i) end
  end
  local file = io.open(files[1])
  if file then file:close() end
  return file and files or {}
end

local function labels(policy, settings)
  local arms = {}
  for i, setting in ipairs(settings) do arms[i] = { label = tostring(i), policy = policy, params = setting } end
  return arms
end

local policy = dt.check(opts.rest[1], "tune: no policy: expected dtrun run tune POLICY [options]")
dt.check(not opts.rest[2] or nil, ("tune: one policy at a time, not '%s' too"):format(opts.rest[2]))
local given = #opts.prompt > 0 or #opts.prompts > 0
local prompts = dt.check(experiment.prompts { files = given and opts.prompt or own_prompts(), sets = opts.prompts,
                                              chars = opts.chars })
dt.check(prompts[2], "tune: at least 2 prompts are needed, half of which are held out: give --prompt FILE...")
local seen, held_out = {}, {}
for i, prompt in ipairs(prompts) do
  local list = i % 2 == 1 and seen or held_out
  list[#list + 1] = prompt
end
local pair = dt.check(dt.load(opts.load))
local random, known = tune.random(opts.seed), {}
local first, space, allowed = tune.first(pair, policy, opts.settings, random, known)
dt.check(first, space)
local near = math.max(1, opts.settings // 2)

local function work(n)
  local runs = 0
  for _, round in ipairs(tune.rounds(n, #seen)) do
    runs = runs + (round.settings + 1) * (round.last - round.first + 1) -- and plain decoding
  end
  return runs
end
local finals = ((FINALISTS + 2) * #seen + 3 * #held_out) * opts.repeats
local total = work(#first) + work(near + FINALISTS) + finals
local bar = dt.progress(total, total * opts.tokens)

-- How fast a run decoded; its prompt pass is the same for all settings.
local function decoding_speed(run)
  local stats = run.stats
  local tokens = stats.tokens_per_iteration * stats.iterations
  return tokens / (tokens / stats.tokens_per_second - stats.time_ms.prompt / 1000)
end

local made = {} -- all runs

-- Each setting's speed-up of decoding, mean over prompts. Of repeated runs the fastest counts: what disturbs a run only
-- slows it.
local function speedups(settings, texts, repeats, warmup)
  local done, message, kind = experiment.run {
    name = "tune", pair = pair, arms = labels(policy, settings), prompts = texts, tokens = { opts.tokens },
    repeats = repeats, warmup = warmup, generate = { ignore_eos = true }, bar = bar }
  if not done then return nil, message, kind end
  table.move(done.runs, 1, #done.runs, #made + 1, made)
  local fastest, means = {}, {}
  for _, run in ipairs(done.runs) do
    local key = run.arm .. " " .. run.prompt
    fastest[key] = math.max(fastest[key] or 0, decoding_speed(run))
  end
  for i in ipairs(settings) do
    means[i] = 0
    for _, prompt in ipairs(texts) do
      means[i] = means[i] + fastest[i .. " " .. prompt.name] / fastest["ar " .. prompt.name] / #texts
    end
  end
  return means
end

local warm = false
local function measure(settings, i)
  local warmup = warm and 0 or 2
  warm = true
  return speedups(settings, { seen[i] }, 1, warmup)
end

local ranked, message, kind = tune.halve(first, #seen, measure)
dt.check(ranked, message, kind)
local best = table.move(ranked, 1, math.min(FINALISTS, #ranked), 1, {})
local more = tune.draw(space, near, random, allowed, known, best)
table.move(best, 1, #best, #more + 1, more)
ranked, message, kind = tune.halve(more, #seen, measure)
dt.check(ranked, message, kind)

local defaults = first[1]
local finalists = { defaults }
for _, setting in ipairs(ranked) do
  if setting ~= defaults and #finalists <= FINALISTS then finalists[#finalists + 1] = setting end
end
local means = dt.check(speedups(finalists, seen, opts.repeats, 0))
local winner = 1
for i, mean in ipairs(means) do
  if mean > means[winner] then winner = i end
end
local tuned = finalists[winner]
local both = dt.check(speedups({ tuned, defaults }, held_out, opts.repeats, 0))
bar:finish()
local busy = record.disturbance(made)
if busy then complain(busy) end

print(("%s, %s, threads: %d; %d settings tried on %d prompts"):format(policy, pair.backend, pair.threads,
  #first + #more - #best, #seen))
print(("decoding speed-up on %d prompts not seen: tuned %.3fx, defaults %.3fx"):format(#held_out, both[1], both[2]))
print("tuned: " .. experiment.label { policy = policy, params = tuned })
print("saved: " .. dt.check(tune.save(pair, policy, tuned,
  { tuned = both[1], defaults = both[2], prompts = #held_out, tokens = opts.tokens })))
