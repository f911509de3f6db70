-- Searches the best parameters of a policy for the pair and machine, and keeps them as its preset `tuned`
local asking = require "dt.asking"
local complain = require "dt.complain"
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"
local seeds = require "dt.seeds"
local shard = require "dt.shard"
local tune = require "dt.tune"

local opts = dt.args {
  doc = [[
Tries random settings from the ranges of the policy's parameters (narrowed by tune= in its definition), keeps the
better half on more and more prompts, and then tries settings near the best. The result is compared with plain decoding
and with the defaults on prompts that the search did not use, and saved in the user's folder: use it with dtrun POLICY
--preset tuned. If the defaults or plain decoding are faster, it is not saved, except with --save-anyway.
With --out each finished run is a line of FILE; the same command continues where it was stopped.
With --shard i/n each of n machines searches a part of the settings; after dtrun run merge FILE SHARDS... the same
command without --shard takes the best of all, compares it and saves it for the machine on which the command runs.
With --chat each prompt is a user's question to a chat model, and the end of an answer ends a run; otherwise
end-of-text does not end a run. With --parallel N a run consists of N prompts at once. --seed also determines the
random settings.]],
  rest = "POLICY",
  options = {
    { "settings", 32, min = 2, max = 4096, doc = "random settings to try; then half as many near the best" },
    { "prompt", many = "FILE", doc = "prompts: text files; every second one is held out (default: dtrun's own)" },
    { "prompts", many = "FILE.jsonl", doc = 'prompts: lines of {"id": .., "prompt": ".."}' },
    { "chars", 800, min = 1, doc = "use only the first characters of each prompt" },
    { "tokens", 100, short = "n", min = 2, max = 2147483647, doc = "new tokens of each run" },
    { "repeats", 3, min = 1, doc = "runs of each finalist and prompt; the fastest counts" },
    { "save_anyway", false, doc = "save the preset even if the defaults or plain decoding are faster" },
    { "out", nil, type = "string", doc = "the file of results" },
    shard.OPTION,
    table.unpack(asking.OPTIONS),
  },
}
local FINALISTS, WARMUP = 6, 2
local FINAL = 3 -- the first repeat of the finalists' runs; repeats 1 and 2 are the two searches

-- The default prompts: 12 of each kind that come with the source, in an order that holds out half of each kind.
local function own_prompts()
  local folder, files = (arg[0]:match "^(.*/)" or "./") .. "prompts/", {}
  for i = 1, 12 do
    local sets = i % 2 == 1 and { "novels", "wikitext2" } or { "wikitext2", "novels" }
    for _, set in ipairs(sets) do files[#files + 1] = ("%s%s/%02d.txt"):format(folder, set, i) end
  end
  local file = io.open(files[1])
  if file then file:close() end
  return file and files or {}
end

local policy = dt.check(opts.rest[1], "tune: no policy: expected dtrun run tune POLICY [options]")
dt.check(not opts.rest[2] or nil, ("tune: unexpected argument '%s': give one policy at a time"):format(opts.rest[2]))
local how = dt.check(asking.chosen(opts))
local part = dt.check(shard.chosen(opts.shard, opts.out))
local given = #opts.prompt > 0 or #opts.prompts > 0
local prompts = dt.check(experiment.prompts { files = given and opts.prompt or own_prompts(), sets = opts.prompts,
                                              chars = opts.chars })
dt.check(prompts[2], "tune: at least 2 prompts are needed, since half of them are held out: give --prompt FILE...")
local seen, held_out = {}, {}
for i, prompt in ipairs(prompts) do
  local list = i % 2 == 1 and seen or held_out
  list[#list + 1] = prompt
end
local counts = { seen = #seen, held_out = #held_out }
seen = how:deal(seen)
held_out = how:deal(held_out, { prompts = counts.seen, batches = #seen })
local all = table.move(held_out, 1, #held_out, #seen + 1, { table.unpack(seen) })
local pair = dt.check(dt.load(opts.load))
local random, known = tune.random(seeds.bits(how.seed)), {}
local drawn, space, allowed = tune.first(pair, policy, opts.settings, random, known)
dt.check(drawn, space)
local defaults = drawn[1]

local function label(setting) return experiment.label { policy = policy, params = setting } end

local function arms_of(settings)
  local arms = {}
  for i, setting in ipairs(settings) do arms[i] = { policy = policy, params = setting } end
  return arms
end

local whole = {
  name = "tune", pair = pair, arms = arms_of(drawn), prompts = all, tokens = { opts.tokens },
  repeats = opts.repeats, warmup = WARMUP, generate = how:options { ignore_eos = not how.chat }, chat = how.chat,
  out = part:file(opts.out), shard = part.name, least = 1,
  protocol = how:noted { chars = opts.chars, drawn = opts.settings, policy = policy },
}
local file, dealt, kind = experiment.open(whole)
dt.check(file, dealt, kind)
local bar

-- Runs the settings on the texts, `repeats` times from the repeat `first` on. Returns each setting's mean speedup of
-- decoding.
local function speedups(settings, texts, first, repeats, warmup)
  local arms, message = experiment.arms(pair, arms_of(settings))
  if not arms then return nil, message end
  local ok, failed, why = experiment.add(file, arms, {
    pair = pair, prompts = texts, tokens = whole.tokens, first = first, repeats = repeats, warmup = warmup,
    generate = whole.generate, chat = how.chat, bar = bar })
  if not ok then return nil, failed, why end
  local of, means = {}, {}
  for _, arm in ipairs(tune.scores(file.runs, texts, first, repeats)) do of[arm.arm] = arm.mean end
  for i, setting in ipairs(settings) do means[i] = of[label(setting)] end
  return means
end

-- The settings of this shard, which always include the defaults; without shards, all settings.
local function share()
  local own, settings = {}, { defaults }
  for _, arm in ipairs(dealt) do own[arm.label] = true end
  for i = 2, #drawn do
    if own[label(drawn[i])] then settings[#settings + 1] = drawn[i] end
  end
  return settings
end

-- Ranks the settings by halving, the best first; search: 1 or 2.
local function halved(settings, search)
  local ranked, message, why = tune.halve(settings, #seen, function(group, i)
    return speedups(group, { seen[i] }, search, 1, search == 1 and i == 1 and WARMUP or 0)
  end)
  return dt.check(ranked, message, why)
end

-- Searches, and returns the finalists as tune.scores does.
local function search()
  local settings, near = share(), math.max(1, opts.settings // 2 // part.of)
  local runs = (FINALISTS + 2) * #seen * opts.repeats
  for _, n in ipairs { #settings, near + FINALISTS } do
    for _, round in ipairs(tune.rounds(n, #seen)) do
      runs = runs + (round.settings + 1) * (round.last - round.first + 1) -- and plain decoding
    end
  end
  if not part.name then runs = runs + 3 * #held_out * opts.repeats end
  bar = dt.progress(runs, runs * opts.tokens)
  local ranked = halved(settings, 1)
  local best = table.move(ranked, 1, math.min(FINALISTS, #ranked), 1, {})
  local more = tune.draw(space, near, random, allowed, known, best)
  table.move(best, 1, #best, #more + 1, more)
  local finalists = { defaults }
  for _, setting in ipairs(halved(more, 2)) do
    if setting ~= defaults and #finalists <= FINALISTS then finalists[#finalists + 1] = setting end
  end
  dt.check(speedups(finalists, seen, FINAL, opts.repeats, 0))
  return tune.scores(file.runs, seen, FINAL, opts.repeats)
end

-- Returns the finalists that shards have found, if the file was merged from shards; otherwise nil.
local function found()
  local last = file.runs[1] and file.runs[1].shard
  if not last then return nil end
  local finalists, finished = tune.scores(file.runs, seen, FINAL, opts.repeats), {}
  for _, arm in ipairs(finalists) do finished[arm.shard] = true end
  local of = dt.check(shard.parse(last)).of
  for i = 1, of do
    dt.check(finished[("%d/%d"):format(i, of)], ("%s: shard %d of %d is not finished: run it again (it continues where "
      .. "it was) and merge it"):format(opts.out, i, of))
  end
  bar = dt.progress(3 * #held_out * opts.repeats)
  return finalists
end

local finalists = found() or search()
local winner = finalists[1]
for _, arm in ipairs(finalists) do
  if arm.mean > winner.mean then winner = arm end
end
local same = winner.arm == label(defaults)
local both = not part.name and dt.check(speedups(same and { defaults } or { winner.setting, defaults }, held_out, FINAL,
  opts.repeats, 0))
bar:finish()
local busy = record.disturbance(file.runs)
if busy then complain(busy) end

local tried, n = {}, 0
for _, run in ipairs(file.runs) do
  if run.arm ~= record.BASELINE and not tried[run.arm] then tried[run.arm], n = true, n + 1 end
end
print(("%s, %s, threads: %d; %d settings tried on %d prompts"):format(policy, pair.backend, pair.threads, n,
  counts.seen))
if part.name then
  print(("best of shard %s: %s, speedup after the prompt %.3fx on the prompts of the search"):format(
    part.name, winner.arm, winner.mean))
  return
end
local speedup = { tuned = both[1], defaults = both[#both], prompts = counts.held_out, tokens = opts.tokens }
print(("speedup after the prompt on %d held-out prompts: tuned %.3fx, defaults %.3fx"):format(counts.held_out,
  speedup.tuned, speedup.defaults))
print("tuned: " .. winner.arm)
if how.wanted then print("for: " .. how.wanted) end
local faster = tune.faster(speedup)
if faster and not opts.save_anyway then
  print(("not saved: on held-out prompts, %s decoded faster than tuned; save it with --save-anyway"):format(faster))
  return
end
print("saved: " .. dt.check(tune.save(pair, policy, winner.setting, speedup, how.wanted)))
