-- Tables and figures of experiment files.  dtrun run report FILE.jsonl... [--out FOLDER]
local dt = require "dt"
local record = require "dt.record"
local report = require "dt.report"

local opts = dt.args {
  doc = "tables, figures and an HTML page of what sweep, paper and tune have written",
  options = {
    { "out", nil, type = "string", doc = "folder to write to (default: the first file's name without .jsonl)" },
  },
  rest = "FILE.jsonl",
}

local function fail(status, message)
  io.stderr:write("dtrun: ", message, "\n")
  os.exit(status, true)
end

if #opts.rest == 0 then fail(2, "report: no file given (see --help)") end
local files, names = {}, {}
for i, path in ipairs(opts.rest) do
  local file, message = record.read(path)
  if not file then fail(2, message) end
  if #file.runs == 0 then fail(2, path .. ": no runs yet, only the line that says what is to be run") end
  files[i] = file
  names[i] = path:match "([^/]+)$":gsub("%.jsonl$", ""):gsub("[^%w_-]", "-")
end
local folder = opts.out or (opts.rest[1]:gsub("%.jsonl$", "") .. (opts.rest[1]:find "%.jsonl$" and "" or "-report"))
local ok, message = report.write(files, names, folder)
if not ok then fail(1, message) end
if message then io.stderr:write("dtrun: ", message, "\n") end
print(folder .. "/report.html")
