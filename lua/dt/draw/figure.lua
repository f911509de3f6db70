-- Figures, drawn with gnuplot as SVG and PNG. A figure is a table of data; this file decides about its looks.
--
-- All have name (of the files), title, xlabel. By kind:
--   bars    series = {"wikitext2", ..}, rows = { {label = "ar", {y =, low =, high =, text =}, ..one per series} }, mark
--   stack   series = {"draft", ..}, rows = { {label = "ar", 0.1, ..one number per series} }
--   lines   ylabel, series = { {label =, points = { {x =, y =, low =, high =}, .. }} }, mark; of = the arm or policy
--           that a series shows if its label differs, faint = true for the less important of two
--   heat    ylabel, zlabel, xs, ys (sorted values), cells[iy][ix] = a ratio or nil; colours change at 1
-- low and high, the ends of an error bar, may be nil. mark is a value at which a line is drawn: 1 means no gain.
-- Rows of bars and series of lines are arms, with plain = true for plain decoding: an arm has one colour and shape in
-- all figures of a script, and a series of bars has a shade of it.
-- Numbers are beside the bars, and the key is above them, where no line passes.
local gnuplot = require "dt.gnuplot"
local palette = require "dt.draw.palette"
local visible = require "dt.draw.visible"

local figure = {}

-- A page's column is a little wider than this, a sheet of A4 three quarters of it: there letters have 11 pixels.
local WIDTH, FONT = 960, 15
local MOST_TICS = 12 -- with more values, gnuplot chooses the marks
local LETTER, SAMPLE, ROW = 9.2, 62, 22 -- pixels: a letter of a label, a colour of the key, a row of the key
local POINTS = { 7, 5, 9, 13, 11, 6, 4, 8, 12, 10, 1, 2 }

-- Assigns colours and shapes: label -> number. Arms and policies keep theirs in all figures; anything else has shades
-- of them.
local function styles_new()
  local known, n = {}, 0
  return function(label)
    local key = "=" .. label
    if not known[key] then n, known[key] = n + 1, n + 1 end
    return known[key]
  end
end

local function colour(number) return palette.SERIES[(number - 1) % #palette.SERIES + 1] end

local FAINTEST = 0.55 -- transparency: shades are lighter on white and darker on black

-- The k-th of n shades of a colour, the first of which is the colour itself; the others are "#aarrggbb".
local function shade(of, k, n)
  if k == 1 then return of end
  return ("#%02x%s"):format(math.floor(255 * FAINTEST * (k - 1) / (n - 1) + 0.5), of:sub(2))
end

-- There is one more shape than colours, so that two labels of one colour differ.
local function shape(number) return POINTS[(number - 1) % #POINTS + 1] end

local MOST_NAME, MOST_TEXT = 44, 90 -- characters of a name; of a title or an axis label

-- A name in the form that figures show.
local function shown(text) return visible.cut(visible.line(text), MOST_NAME) end

-- A text as one line for gnuplot.
local function quote(text) return gnuplot.text(visible.cut(visible.line(text), MOST_TEXT)) end

-- A name at a mark of an axis, where % begins a format.
local function tic(name, at) return ("%s %d"):format(gnuplot.text((shown(name):gsub("%%", "%%%%"))), at) end

local function number(x) return ("%.10g"):format(x) end

-- A text inside a data block, where nothing can be escaped.
local function label(text) return '"' .. text:gsub('["%c\\]', " ") .. '"' end

local function add(out, form, ...) out[#out + 1] = select("#", ...) > 0 and form:format(...) or form end

local function block(out, name, rows)
  add(out, "$%s << END_OF_DATA", name)
  for _, row in ipairs(rows) do add(out, (table.concat(row, " "))) end
  add(out, "END_OF_DATA")
end

local function longest(labels)
  local most = 0
  for _, text in ipairs(labels) do most = math.max(most, utf8.len(shown(text))) end
  return most
end

-- Adds a key with as many columns as fit side by side in `width` pixels; returns how many pixels it is higher than one
-- row.
local function add_key(out, f, labels, width)
  local columns = math.max(1, math.floor(width / (SAMPLE + LETTER * longest(labels))))
  add(out, "set key tmargin center horizontal Left reverse samplen 2 maxcols %d title %s", columns, quote(f.title))
  return ROW * ((#labels - 1) // columns)
end

-- Adds the parts that all horizontal bars share; `most` is the end of the axis. Returns the pixels that labels leave
-- for bars.
local function add_rows(out, rows, most)
  local tics, labels = {}, {}
  for i, row in ipairs(rows) do
    labels[i], tics[i] = row.label, tic(row.label, i)
  end
  add(out, "set ytics (%s) scale 0", table.concat(tics, ", "))
  add(out, "set xrange [0:%s]", number(most > 0 and most or 1))
  add(out, "set yrange [%d.5:0.5]", #rows)
  add(out, "set grid x")
  return WIDTH - LETTER * longest(labels) - 50
end

local KINDS = {}

-- Bars are horizontal, so that long labels have room; the first row is on top. Their numbers are a column at the right.
-- Bars have the colours of their rows; several series have shades of these.
function KINDS.bars(f, out, plots, styles)
  local n, height, most, texts, colours = #f.series, 0.8 / #f.series, f.mark or 0, {}, {}
  for i, row in ipairs(f.rows) do
    colours[i] = row.plain and palette.PLAIN or colour(styles(row.label))
    for k = 1, n do
      if row[k] then
        most, texts[#texts + 1] = math.max(most, row[k].high or row[k].y), row[k].text
      end
    end
  end
  most = most * 1.04
  for k = 1, n do
    local bars, errors = {}, {}
    for i, row in ipairs(f.rows) do
      local cell = row[k]
      if cell then
        local y = i - 0.4 + (k - 0.5) * height
        bars[#bars + 1] = { number(cell.y), number(y), 0, number(cell.y), number(y - 0.45 * height),
                            number(y + 0.45 * height), number(most), label(cell.text),
                            (shade(colours[i], k, n):gsub("#", "0x")) }
        if cell.low then errors[#errors + 1] = { number(cell.y), number(y), number(cell.low), number(cell.high) } end
      end
    end
    if #bars > 0 then
      block(out, "bars" .. k, bars)
      add(plots, "$bars%d using 1:2:3:4:5:6:9 with boxxyerror fillcolor rgb variable notitle", k)
      add(plots, "$bars%d using 7:2:8 with labels left offset char 1,0 notitle", k)
      if n > 1 then -- an entry of the key
        add(plots, "NaN with boxes fillcolor rgb '%s' title %s", shade(palette.PLAIN, k, n), quote(shown(f.series[k])))
      end
    end
    if #errors > 0 then
      block(out, "errors" .. k, errors)
      add(plots, "$errors%d using 1:2:3:4 with xerrorbars pointtype -1 linewidth 1 linecolor rgb '#333333' notitle", k)
    end
  end
  local width = add_rows(out, f.rows, most)
  add(out, "set rmargin %d", longest(texts) + 3)
  if f.mark then
    local x = number(f.mark)
    add(out, "set arrow from %s, graph 0 to %s, graph 1 nohead dashtype 2 linecolor rgb '#666666' front", x, x)
  end
  local rows = math.max(#f.rows * math.max(32, n * 21), 75)
  return 146 + rows + add_key(out, f, f.series, width - LETTER * longest(texts))
end

function KINDS.stack(f, out, plots)
  local start, most = {}, 0
  for k, name in ipairs(f.series) do
    local bars = {}
    for i, row in ipairs(f.rows) do
      local stop = (start[i] or 0) + row[k]
      bars[i] = { number(row[k]), i, number(start[i] or 0), number(stop), i - 0.35, i + 0.35 }
      start[i], most = stop, math.max(most, stop)
    end
    block(out, "part" .. k, bars)
    add(plots, "$part%d using 1:2:3:4:5:6 with boxxyerror fillcolor rgb '%s' title %s", k,
        palette.PHASES[name] or colour(k), quote(shown(name)))
  end
  local width = add_rows(out, f.rows, most * 1.05)
  return 146 + math.max(#f.rows * 34, 75) + add_key(out, f, f.series, width)
end

-- The range of the numbers from low to high, with a small margin on both sides.
local function range(axis, low, high, share)
  local margin = math.max(high - low, math.abs(high) * 0.02, 1e-9) * share
  local start = low >= 0 and math.max(0, low - margin) or low - margin
  return ("set %srange [%s:%s]"):format(axis, number(axis == "x" and low - margin or start), number(high + margin))
end

-- Whether most curves have most of their points in the first quarter of the axis, since a few have a long tail.
local function is_cramped(series, low, high)
  local cramped = 0
  for _, one in ipairs(series) do
    local near = 0
    for _, p in ipairs(one.points) do near = near + (p.x <= low + (high - low) / 4 and 1 or 0) end
    cramped = cramped + (near > #one.points / 2 and 1 or 0)
  end
  return low > 0 and high >= 8 * low and cramped > #series / 2
end

-- For each curve, the number of later curves that coincide with it wherever both have a point.
local function coincidences(series, reach)
  local above = {}
  for i, one in ipairs(series) do
    local known = {}
    above[i] = 0
    for _, p in ipairs(one.points) do known[p.x] = p.y end
    for k = i + 1, #series do
      local both, apart = 0, false
      for _, p in ipairs(series[k].points) do
        both = both + (known[p.x] and 1 or 0)
        apart = apart or known[p.x] and math.abs(known[p.x] - p.y) > reach
      end
      if both > 0 and not apart then above[i] = above[i] + 1 end
    end
  end
  return above
end

-- The extent of lines: left to right, low to high, the x values (as texts), and how many curves have intervals.
local function extent(f)
  local xs, ys, tics, known, intervals = {}, { f.mark }, {}, {}, 0
  for _, series in ipairs(f.series) do
    local has = false
    for _, p in ipairs(series.points) do
      for _, y in ipairs { p.y, p.low, p.high } do ys[#ys + 1] = y end
      xs[#xs + 1], has = p.x, has or p.low ~= nil
      if not known[p.x] then
        known[p.x] = true
        tics[#tics + 1] = number(p.x)
      end
    end
    intervals = intervals + (has and 1 or 0)
  end
  return { left = math.min(table.unpack(xs)), right = math.max(table.unpack(xs)), low = math.min(table.unpack(ys)),
           high = math.max(table.unpack(ys)), tics = tics, intervals = intervals }
end

local function add_axes(out, f, all, logarithmic)
  if logarithmic then
    local margin = (all.right / all.left) ^ 0.03
    add(out, "set logscale x 2\nset xlabel %s", quote(f.xlabel .. " (logarithmic axis)"))
    add(out, "set xrange [%s:%s]", number(all.left / margin), number(all.right * margin))
  else
    add(out, range("x", all.left, all.right, 0.03))
  end
  add(out, range("y", all.low, all.high, 0.06))
  if all.intervals > 0 then add(out, "set ylabel %s", quote(f.ylabel .. ", 95 % interval")) end
  if #all.tics <= MOST_TICS then add(out, "set xtics (%s)", table.concat(all.tics, ", ")) end
  add(out, "set grid")
end

-- Curves that coincide lie on one another like ribbons, the last the narrowest. Intervals at one x are side by side.
function KINDS.lines(f, out, plots, styles)
  local all, labels = extent(f), {}
  local logarithmic, above = is_cramped(f.series, all.left, all.right), coincidences(f.series,
    0.015 * (all.high - all.low))
  local aside = all.intervals > 1 and 0.008 or 0 -- share of the axis between two curves
  for k, series in ipairs(f.series) do
    local points, errors, shift = {}, {}, aside * (k - (#f.series + 1) / 2)
    local number_of = styles(series.of or series.label)
    local own = series.plain and palette.PLAIN or shade(colour(number_of), series.faint and 2 or 1, 3)
    for i, p in ipairs(series.points) do
      local x = logarithmic and p.x * (all.right / all.left) ^ shift or p.x + (all.right - all.left) * shift
      points[i] = { number(x), number(p.y) }
      if p.low then errors[#errors + 1] = { number(x), number(p.y), number(p.low), number(p.high) } end
    end
    if #errors > 0 then
      block(out, "errors" .. k, errors)
      add(plots, "$errors%d with yerrorbars pointtype -1 linewidth 1 linecolor rgb '%s' notitle", k, own)
    end
    block(out, "line" .. k, points)
    local ribbon = math.min(above[k], 4)
    add(plots, "$line%d with linespoints pointtype %d pointsize %.2g linewidth %.2g linecolor rgb '%s' title %s", k,
        shape(number_of + (series.faint and 1 or 0)), 0.9 + 0.55 * ribbon, 2 + 2.8 * ribbon, own,
        quote(shown(series.label)))
    labels[k] = series.label
  end
  if f.mark then add(plots, "%s with lines dashtype 2 linecolor rgb '#666666' notitle", number(f.mark)) end
  add_axes(out, f, all, logarithmic)
  return 500 + add_key(out, f, labels, WIDTH - 100)
end

-- Cells are side by side whatever the distance of the values, each with its number; cells without a run stay empty.
function KINDS.heat(f, out, plots)
  local cells, low, high = {}, math.huge, -math.huge
  for iy in ipairs(f.ys) do
    for ix in ipairs(f.xs) do
      local z = f.cells[iy][ix]
      if z then
        cells[#cells + 1] = { ix = ix, iy = iy, z = z }
        low, high = math.min(low, z), math.max(high, z)
      end
    end
  end
  local reach = math.max(math.abs(high - 1), math.abs(low - 1), 0.05) -- range of the colours on both sides of 1
  for i, c in ipairs(cells) do
    local ink = math.abs(c.z - 1) / reach > 0.6 and 0xffffff or 0x111111
    cells[i] = { c.ix, c.iy, c.ix - 0.5, c.ix + 0.5, c.iy - 0.5, c.iy + 0.5, number(c.z),
                 label(("%.2f"):format(c.z)), ink }
  end
  block(out, "cells", cells)
  for _, axis in ipairs { { "x", f.xs }, { "y", f.ys } } do
    local tics = {}
    for i, value in ipairs(axis[2]) do tics[i] = tic(number(value), i) end
    add(out, "set %stics (%s) scale 0", axis[1], table.concat(tics, ", "))
    add(out, "set %srange [0.5:%d.5]", axis[1], #axis[2])
  end
  add(out, "set palette defined (-1 '#8c3a00', -0.5 '#e69f50', 0 '#f7f7f7', 0.5 '#5aa5d6', 1 '#004a80')")
  add(out, "set cbrange [%s:%s]", number(1 - reach), number(1 + reach))
  add(out, "set cblabel %s", quote(f.zlabel))
  add(plots, "$cells using 1:2:3:4:5:6:7 with boxxyerror fillcolor palette notitle")
  add(plots, "$cells using 1:2:8:9 with labels textcolor rgb variable notitle")
  return 170 + 38 * math.max(#f.ys, 4)
end

local SVG = "set terminal svg noenhanced size %d,%d name '%s' background '#ffffff' font 'sans-serif,%d'"
local PNG = "set terminal pngcairo noenhanced size %d,%d background '#ffffff' font 'sans,%g' fontscale 1.5"

-- The commands of one figure.
local function commands(f, styles)
  local plots, title = {}, quote(f.title)
  local out = {
    "reset session", "set encoding utf8", "set xlabel " .. quote(f.xlabel), "set ylabel " .. quote(f.ylabel or ""),
    "set style fill solid 1 noborder", "set border 3 linecolor rgb '#555555'",
    "set tics nomirror textcolor rgb '#222222'", "set key noautotitle", "set errorbars 1.2",
  }
  local height = KINDS[f.kind](f, out, plots, styles)
  if f.kind == "heat" or #(f.series or {}) == 1 then add(out, "unset key; set title %s", title) end
  local plot = "plot " .. table.concat(plots, ", \\\n  ")
  add(out, SVG, WIDTH, height, (f.name:gsub("%W", "_")), FONT)
  add(out, "set output %s\n%s", gnuplot.file(f.name .. ".svg"), plot)
  add(out, PNG, WIDTH * 3 // 2, height * 3 // 2, 0.8 * FONT) -- size in points
  add(out, "set output %s\n%s\nset output", gnuplot.file(f.name .. ".png"), plot)
  return table.concat(out, "\n") .. "\n"
end

-- The gnuplot script that draws the figures into the folder where it runs.
function figure.script(figures)
  local all, styles = {}, styles_new()
  for i, f in ipairs(figures) do all[i] = commands(f, styles) end
  return table.concat(all, "\n")
end

local SCRIPT = "figures.gp"

local function whole(path, ending)
  local file = io.open(path, "rb")
  local size = file and file:seek "end"
  local tail = size and size > 64 and file:seek("end", -64) and file:read "a"
  if file then file:close() end
  return tail and tail:find(ending, 1, true) ~= nil
end

-- Draws the figures into folder as NAME.svg and NAME.png, and leaves the script there: true; false and one line if
-- gnuplot is missing or fails; or nil and a message if the folder cannot be written.
function figure.draw(figures, folder)
  local path = folder .. "/" .. SCRIPT
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local written, reason = file:write(figure.script(figures))
  local closed, why = file:close()
  if not written or not closed then return nil, ("%s: %s"):format(path, reason or why) end
  local drawn, refusal = gnuplot.run(folder, SCRIPT)
  if not drawn then return false, "the figures are not drawn: " .. refusal end
  for _, f in ipairs(figures) do
    local file_name = folder .. "/" .. f.name
    if not whole(file_name .. ".svg", "</svg>") or not whole(file_name .. ".png", "IEND") then
      return nil, file_name .. ": not written whole: is the disk full?"
    end
  end
  return true
end

return figure
