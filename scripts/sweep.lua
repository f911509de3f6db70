-- Tries many settings of one or more policies over prompts, compared with plain decoding
local asking = require "dt.asking"
local complain = require "dt.complain"
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"
local shard = require "dt.shard"
local sweep = require "dt.sweep"

local opts = dt.args {
  doc = [[
Runs every combination of the values given with --set over every prompt and length, and prints the best settings.
Values are lists and ranges: K=1,2,4  D=3..8  tau=0.1..0.5:0.1. Policies come first: sweep linear fixed_tree --set ...
Each policy takes the names that it declares; a combination that its check refuses is left out.
With --out each finished run is a line of FILE; the same command continues where it was stopped.
A policy's error ends only its own run. It is recorded in FILE and reported at the end, and the exit status is 3. The
same command does not repeat such a run, unless --retry is given or the policy's text has changed.
With --shard i/n each of n machines runs a part of the settings; dtrun run merge FILE SHARDS... merges their files.
With --chat each prompt is a user's question to a chat model; with --parallel N a run consists of N prompts at once.]],
  rest = "POLICY",
  options = {
    { "set", many = "NAME=VALUES", doc = "values of parameters to combine" },
    { "preset", nil, type = "string", doc = "the policy's preset to start from" },
    { "prompt", many = "FILE", doc = "prompts: text files" },
    { "prompts", many = "FILE.jsonl", doc = 'prompts: lines of {"id": .., "prompt": ".."}' },
    { "chars", nil, type = "integer", min = 1, doc = "use only the first characters of each prompt" },
    { "tokens", "128", short = "n", doc = "new tokens; several lengths: 100,300" },
    { "ignore_eos", false, doc = "end-of-text does not end a run" },
    { "repeats", 3, min = 1, doc = "runs of each setting, prompt and length" },
    { "warmup", 1, min = 0, doc = "short runs before the first that do not count" },
    { "out", nil, type = "string", doc = "the file of results" },
    { "retry", false, doc = "repeat runs that an error of their policy ended" },
    shard.OPTION,
    { "best", 10, min = 0, doc = "number of settings in the table at the end" },
    table.unpack(asking.OPTIONS),
  },
}

dt.check(opts.rest[1], "sweep: no policy: expected dtrun run sweep POLICY [options]")
local how = dt.check(asking.chosen(opts))
local part = dt.check(shard.chosen(opts.shard, opts.out))
local lengths = dt.check(sweep.values({ name = "--tokens", type = "integer", min = 1, max = 2147483647 },
  opts.tokens))
local prompts = dt.check(experiment.prompts { files = opts.prompt, sets = opts.prompts, chars = opts.chars })
local pair = dt.check(dt.load(opts.load))
local arms, left_out = sweep.arms(pair, opts.rest, opts.preset, opts.set)
dt.check(arms, left_out)

local done = dt.check(experiment.run {
  name = "sweep", pair = pair, arms = arms, prompts = how:deal(prompts), tokens = lengths, repeats = opts.repeats,
  warmup = opts.warmup, generate = how:options { ignore_eos = opts.ignore_eos }, chat = how.chat,
  protocol = how:noted { chars = opts.chars }, out = part:file(opts.out), shard = part.name, go_on = true,
  retry = opts.retry,
})

local busy = record.disturbance(done.runs)
if busy then complain(busy) end
local ranking = sweep.rank(done.runs)
print(("%d settings%s%s, prompts: %d, tokens: %s, %s%s, threads: %d; outputs equal"):format(#ranking,
  part.name and " of shard " .. part.name or "",
  left_out > 0 and (" (%d more left out by checks of policies)"):format(left_out) or "", #prompts, opts.tokens,
  how.wanted and how.wanted .. ", " or "", pair.backend, pair.threads))
if opts.best > 0 then print(sweep.table(ranking, opts.best)) end
for _, line in ipairs(record.failed(done.failures)) do complain(line) end
if done.failures[1] then os.exit(3, true) end
