-- Measures what a pass of each model costs on this machine, by rows and context; keeps the table for policies, prints
-- it and plots it.
local complain = require "dt.complain"
local dt = require "dt"
local gnuplot = require "dt.gnuplot"

local opts = dt.args {
  doc = "measures the costs of a pair's passes on this machine, and prints a table and a plot",
  options = {
    { "batch", 1, min = 1, max = 256, doc = "number of sequences at once; rows are those of each" },
    { "fresh", false, doc = "measure again and ignore the cache" },
    { "json", nil, type = "string", doc = "write the table to this file" },
    { "plot", nil, type = "string", doc = "draw the table with gnuplot to this file: .svg or .png" },
  },
}
local MODELS = { "target", "draft" }
local PLOTTED, WIDTH = 64, 50 -- rows and characters of the plot on the terminal

local function fail(status, ...)
  complain((...):format(select(2, ...)))
  os.exit(status, true)
end

local function write(path, text)
  local file, message = io.open(path, "w")
  local written = file and file:write(text)
  if not (file and file:close() and written) then fail(1, "%s", message or path .. ": cannot be written") end
end

-- Prints one line per row count, with one column per model and context and two for a target's experts.
local function print_table(t)
  local head = { "  rows" }
  for _, model in ipairs(MODELS) do
    for k in ipairs(t[model] or {}) do head[#head + 1] = ("%12s"):format(model .. "@" .. t.contexts[k]) end
  end
  if t.experts then head[#head + 1] = "     experts    one more" end
  print(table.concat(head))
  for i, rows in ipairs(t.rows) do
    local line = { ("%6d"):format(rows) }
    for _, model in ipairs(MODELS) do
      for _, ms in ipairs(t[model] or {}) do line[#line + 1] = ("%12.4f"):format(ms[i]) end
    end
    if t.experts then line[#line + 1] = ("%12d%12.4f"):format(t.experts[i], t.expert[i]) end
    print(table.concat(line))
  end
end

-- Prints the other costs of the table: the draft's first pass of an iteration and the texts that it reads, cache
-- misses, and sampling.
local function print_rest(t)
  local first = {}
  for k, ms in ipairs(t.first or {}) do first[k] = ("%.4f@%d"):format(ms, t.contexts[k]) end
  if #first > 0 then print(("first draft pass of an iteration: %s"):format(table.concat(first, ", "))) end
  if t.read then print(("a token of a text that the draft reads without guessing: %.4f"):format(t.read)) end
  print(("cache misses (reading 32 KiB): at once again %.4f, after a pass %.4f, after several passes %.4f"):format(
    t.cache_miss[1], t.cache_miss[2], t.cache_miss[3]))
  print(("sampling, per row: %.4f%s"):format(
    t.target_sample, t.draft_sample and (", of a coupled draft %.4f"):format(t.draft_sample) or ""))
end

-- Plots the cost of each pass as a multiple of that of a pass over one row.
local function print_plot(t, model)
  local ms, last = t[model][1], 1
  while t.rows[last + 1] and t.rows[last + 1] <= PLOTTED do last = last + 1 end
  print(("\n%s, context %d: cost / cost of one row"):format(model, t.contexts[1]))
  for i = 1, last do
    print(("%6d %s %.2f"):format(t.rows[i], ("#"):rep(math.ceil(ms[i] / ms[last] * WIDTH)), ms[i] / ms[1]))
  end
end

local function draw(t, path)
  local terminal = ({ svg = "svg size 900,540", png = "pngcairo size 900,540" })[path:match "%.(%a+)$" or ""]
  if not terminal then fail(2, "--plot %s: the name must end in .svg or .png", path) end
  local data, curves = {}, {}
  for m, model in ipairs(MODELS) do
    for k in ipairs(t[model] or {}) do
      curves[#curves + 1] = ("'-' with linespoints lc %d dt %d title '%s, context %d'"):format(
        m, k, model, t.contexts[k])
      for i, rows in ipairs(t.rows) do data[#data + 1] = ("%d %.6f"):format(rows, t[model][k][i]) end
      data[#data + 1] = "e"
    end
  end
  local script = os.tmpname()
  write(script, table.concat {
    "set terminal ", terminal, "\nset output ", gnuplot.file(path), "\n",
    "set logscale xy\nset key top left\nset xlabel 'rows'\nset ylabel 'ms'\n",
    "plot ", table.concat(curves, ", "), "\n", table.concat(data, "\n"), "\n",
  })
  local drawn, refusal = gnuplot.run(".", script)
  os.remove(script)
  if not drawn then fail(1, "--plot %s: %s", path, refusal) end
end

local pair, err = dt.load(opts.load)
if not pair then fail(err.kind == "device" and 1 or 2, "%s", err.message) end
local costs, t = dt.measure_costs(pair, { fresh = opts.fresh, batch = opts.batch })
if not costs then fail(1, "%s", t.message) end
local batch = t.batch > 1 and (" over %d sequences, by rows per sequence"):format(t.batch) or ""
print(("milliseconds per pass%s, %s, %d thread%s; target %s, draft %s"):format(batch, pair.backend, pair.threads,
  pair.threads == 1 and "" or "s",
  pair.target.path, pair.draft and pair.draft.path or "none"))
print_table(t)
print_rest(t)
for _, model in ipairs(MODELS) do
  if t[model] then print_plot(t, model) end
end
if opts.json then write(opts.json, dt.json.encode(t, true) .. "\n") end
if opts.plot then draw(t, opts.plot) end
