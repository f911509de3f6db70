-- Tables and figures of experiment files.  dtrun run report FILE.jsonl... [--out FOLDER]
local complain = require "dt.complain"
local dt = require "dt"
local record = require "dt.record"
local report = require "dt.report"

local opts = dt.args {
  doc = "tables, figures and an HTML page of what sweep, paper and tune have written",
  options = {
    { "out", nil, type = "string", doc = "folder to write to (default: the first file's name without .jsonl)" },
  },
  rest = "FILE.jsonl",
  models = false,
}

dt.check(opts.rest[1], "report: no file: expected dtrun run report FILE.jsonl... [options]")
local files = {}
for i, path in ipairs(opts.rest) do
  files[i] = dt.check(record.read(path))
  dt.check(files[i].runs[1], path .. ": no runs yet, only the line that says what is to be run")
end
local folder, missing = report.write(files, opts.rest, opts.out)
dt.check(folder, missing, "device")
if missing then complain(missing) end
print(folder .. "/report.html")
