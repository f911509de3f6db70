-- Puts the files of an experiment's shards together.  dtrun run merge OUT FILE.jsonl...
local complain = require "dt.complain"
local dt = require "dt"
local merge = require "dt.merge"
local record = require "dt.record"

local opts = dt.args {
  doc = [[
Makes OUT, an experiment file like any, of what sweep, tune and paper have written with --shard; where OUT is there,
made of some of these shards, the others are added. Files of another program, models, policies, options or kind of
machine are refused; a run that is there twice is taken once. What is missing is named; the exit status is 2 then.]],
  rest = "OUT FILE.jsonl",
  models = false,
}

local out, paths, files = opts.rest[1], { table.unpack(opts.rest, 2) }, {}
dt.check(paths[1], "merge: expected dtrun run merge OUT FILE.jsonl..., FILEs being those of the shards")
for i, path in ipairs(paths) do files[i] = dt.check(record.read(path)) end

local runs, missing, kind = merge.write(out, files, paths)
dt.check(runs, missing, kind)
print(("%s: %d runs"):format(out, runs))
if missing then
  complain(out, " is not all: ", missing, ": run these shards again (each goes on where it was) and merge them")
  os.exit(2, true)
end
