-- Makes a page that shows the trees of a trace one by one.  dtrun run trace FILE.jsonl [--sequence 3] [--out PAGE.html]
local complain = require "dt.complain"
local dt = require "dt"
local page = require "dt.trace_page"
local trace = require "dt.trace"
local trees = require "dt.trace_trees"

local opts = dt.args {
  doc = "makes an HTML page that shows the trees of a trace (--trace), iteration by iteration",
  options = {
    { "out", nil, type = "string", doc = "the page (default: FILE with .html instead of .jsonl)" },
    { "sequence", nil, type = "integer", min = 1, doc = "which text of a trace of several (default: the first)" },
  },
  rest = "FILE.jsonl",
  models = false,
}

local function fail(status, message)
  complain(message)
  os.exit(status, true)
end

if #opts.rest ~= 1 then fail(2, "trace: expected one file (see --help)") end
local path = opts.rest[1]
local out = opts.out or path:gsub("%.jsonl$", "") .. ".html"
local found, flaws = trace.read(path, opts.sequence)
if not found then fail(2, flaws) end
local drawings = trees.draw(found.iterations)
local file, message = io.open(out, "wb")
if not file then fail(1, message) end
local ok, failure = file:write(page(found, drawings))
local closed, late = file:close()
if not ok or not closed then fail(1, ("%s: %s"):format(out, failure or late)) end
local others = #found.sequences - 1
print(out .. (others > 0 and (" (sequence %d of %d: --sequence)"):format(found.sequence, others + 1) or ""))
if flaws then fail(2, flaws) end
