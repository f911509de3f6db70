-- Writes tables and figures of experiment files.  dtrun run report FILE.jsonl... [--out FOLDER]
local complain = require "dt.complain"
local dt = require "dt"
local merge = require "dt.merge"
local record = require "dt.record"
local report = require "dt.report"

local opts = dt.args {
  doc = [[
Makes tables, figures and an HTML page from the files of sweep, paper and tune. Several files are several experiments
on one page; the shards of one experiment are merged, even while some are not finished.]],
  options = {
    { "out", nil, type = "string", doc = "folder to write to (default: the first file's name without .jsonl)" },
  },
  rest = "FILE.jsonl",
  models = false,
}

dt.check(opts.rest[1], "report: no file: expected dtrun run report FILE.jsonl... [options]")
local read = {}
for i, path in ipairs(opts.rest) do
  read[i] = dt.check(record.read(path))
end
local files, paths = merge.grouped(read, opts.rest)
dt.check(files, paths)
for i, path in ipairs(paths) do
  dt.check(files[i].runs[1], path .. ": the experiment has no runs yet")
end
local folder, missing = report.write(files, paths, opts.out)
dt.check(folder, missing, "device")
if missing then complain(missing) end
print(folder .. "/report.html")
