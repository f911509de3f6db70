-- Merges the files of an experiment's shards.  dtrun run merge OUT FILE.jsonl...
local complain = require "dt.complain"
local dt = require "dt"
local merge = require "dt.merge"
local record = require "dt.record"

local opts = dt.args {
  doc = [[
Merges the files that sweep, tune and paper have written with --shard into the experiment file OUT. If OUT exists and
has some of these shards, the others are added. Files from another program, models, policies, options or kind of
machine are refused; a run that is in several files is used once. If runs are missing, they are listed and the exit
status is 2.]],
  rest = "OUT FILE.jsonl",
  models = false,
}

local out, paths, files = opts.rest[1], { table.unpack(opts.rest, 2) }, {}
dt.check(paths[1], "merge: no files of shards: expected dtrun run merge OUT FILE.jsonl...")
for i, path in ipairs(paths) do files[i] = dt.check(record.read(path)) end

local runs, missing, kind = merge.write(out, files, paths)
dt.check(runs, missing, kind)
print(("%s: %d run%s"):format(out, runs, runs == 1 and "" or "s"))
if missing then
  complain(out, " is incomplete: ", missing, ": run these shards again (each continues where it was) and merge them")
  os.exit(2, true)
end
