-- Figures, drawn with gnuplot as SVG and PNG. A figure is a table of data; this file determines what it looks like.
--
-- All have name (of the files), title, xlabel. By kind:
--   bars    series = {"wikitext2", ..}, rows = { {label = "ar", {y =, low =, high =, text =}, ..one per series} }, mark
--   stack   series = {"draft", ..}, rows = { {label = "ar", 0.1, ..one number per series} }
--   lines   ylabel, series = { {label =, points = { {x =, y =, low =, high =}, .. }} }, mark; of = the arm or policy
--           that a series shows if its label differs, faint = true for the less important of two
--   heat    ylabel, zlabel, xs, ys (sorted values), cells[iy][ix] = a ratio or nil; colours change at 1
-- low and high, the ends of an error bar, may be nil. mark is a value at which a line is drawn: 1 means no speedup.
-- Rows of bars and series of lines are arms, with plain = true for plain decoding: an arm has one colour and shape in
-- all figures of a script, and a series of bars has a shade of it.
-- Numbers are next to the bars; the key is above the figure, where no line passes.
local gnuplot = require "dt.gnuplot"
local palette = require "dt.draw.palette"
local visible = require "dt.draw.visible"

local figure = {}

-- Layouts: width, font size and letter width in pixels; maximum number of characters of a name and of a line of a title
-- or label; maximum number of marks of an axis at round numbers. The wide layout is a little narrower than the column
-- of a page and a third wider than a sheet of A4; the narrow one is a quarter wider than a phone's screen, where
-- letters then have 11 pixels.
local WIDE = { width = 960, font = 15, letter = 9.2, name = 44, line = 90 }
local NARROW = { width = 440, font = 14, letter = 8.6, name = 38, line = 46, tics = 6, is_narrow = true }
local MOST_TICS = 12 -- with more values, gnuplot chooses the marks
-- In pixels: a colour sample of the key; a row of the key or of text; the gap below narrow bars.
local SAMPLE, ROW, GAP = 62, 22, 8
local POINTS = { 7, 5, 9, 13, 11, 6, 4, 8, 12, 10, 1, 2 }

-- Assigns colours and shapes: label -> number. Arms and policies have the same in all figures; anything else has shades
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

-- The k-th of n shades of a colour: the first is the colour itself, the others are "#aarrggbb".
local function shade(of, k, n)
  if k == 1 then return of end
  return ("#%02x%s"):format(math.floor(255 * FAINTEST * (k - 1) / (n - 1) + 0.5), of:sub(2))
end

-- There is one more shape than colours, so that two labels of one colour differ.
local function shape(number) return POINTS[(number - 1) % #POINTS + 1] end

local MOST_TEXT = 90 -- characters of a title or an axis label

-- A name in the form that figures show.
local function shown(text, layout) return visible.cut(visible.line(text), layout.name) end

-- A text as one line for gnuplot.
local function quote(text) return gnuplot.text(visible.cut(visible.line(text), MOST_TEXT)) end

-- A title or label as lines for gnuplot, and the pixels that the lines after the first take.
local function wrap(text, layout)
  local lines = { "" }
  for word in visible.cut(visible.line(text), MOST_TEXT):gmatch "%S+" do
    local last = lines[#lines]
    if last ~= "" and utf8.len(last) + 1 + utf8.len(word) > layout.line then
      lines[#lines + 1] = word
    else
      lines[#lines] = last == "" and word or last .. " " .. word
    end
  end
  return gnuplot.text(table.concat(lines, "\n")), ROW * (#lines - 1)
end

-- A name at a mark of an axis; there % would begin a format.
local function tic(name, at, layout)
  return ("%s %d"):format(gnuplot.text((shown(name, layout):gsub("%%", "%%%%"))), at)
end

local function number(x) return ("%.10g"):format(x) end

-- A text inside a data block, where nothing can be escaped.
local function label(text) return '"' .. text:gsub('["%c\\]', " ") .. '"' end

local function add(out, form, ...) out[#out + 1] = select("#", ...) > 0 and form:format(...) or form end

local function block(out, name, rows)
  add(out, "$%s << END_OF_DATA", name)
  for _, row in ipairs(rows) do add(out, (table.concat(row, " "))) end
  add(out, "END_OF_DATA")
end

local function longest(labels, layout)
  local most = 0
  for _, text in ipairs(labels) do most = math.max(most, utf8.len(shown(text, layout))) end
  return most
end

-- Adds a key with as many columns as fit next to each other in `width` pixels; returns the pixels by which it is higher
-- than one row.
local function add_key(out, f, labels, width, layout)
  local columns = math.max(1, math.floor(width / (SAMPLE + layout.letter * longest(labels, layout))))
  local title, more = wrap(f.title, layout)
  add(out, "set key tmargin center horizontal Left reverse samplen 2 maxcols %d title %s", columns, title)
  return ROW * ((#labels - 1) // columns) + more
end

-- A round distance between marks such that at most n marks are within a length.
local function step(length, n)
  local unit = 10.0 ^ math.floor(math.log(length / n, 10))
  for _, times in ipairs { 1, 2, 5 } do
    if times * unit * n >= length then return times * unit end
  end
  return 10 * unit
end

-- Returns where the bars of a row begin and end, as shares of its height from its middle, and that height. Without its
-- label a row has `pixels` pixels, of which bars take `share`; in the narrow layout the label is above the bars and not
-- next to them.
local function row_of(pixels, share, layout)
  if not layout.is_narrow then return -share / 2, share / 2, pixels end
  local height = pixels + ROW
  local top = ROW / height - 0.5
  return top, top + (pixels - GAP) / height, height
end

-- Adds the parts that all horizontal bars share; `most` is the end of the axis. Returns the pixels that labels leave
-- for bars.
local function add_rows(out, plots, rows, most, layout)
  local tics, labels, above = {}, {}, {}
  most = most > 0 and most or 1
  for i, row in ipairs(rows) do
    labels[i], tics[i] = row.label, tic(row.label, i, layout)
  end
  add(out, "set xrange [0:%s]", number(most))
  add(out, "set yrange [%d.5:0.5]", #rows)
  if not layout.is_narrow then
    add(out, "set ytics (%s) scale 0", table.concat(tics, ", "))
    add(out, "set grid x")
    return layout.width - layout.letter * longest(labels, layout) - 50
  end
  for i, row in ipairs(rows) do above[i] = { 0, number(i - 0.5), label(shown(row.label, layout)) } end
  block(out, "names", above)
  add(out, "unset ytics; set lmargin 2; set xtics %s", number(step(most, layout.tics - 1)))
  add(plots, "$names using 1:2:3 with labels left offset char 0.6,-0.55 notitle")
  return layout.width - 50
end

local KINDS = {}

-- Bars are horizontal, so that long labels have room; the first row is on top. The numbers form a column at the right.
-- Bars have the colours of their rows; several series have shades of these.
function KINDS.bars(f, out, plots, styles, layout)
  local n, most, texts, colours = #f.series, f.mark or 0, {}, {}
  local top, bottom, row_height = row_of(math.max(32, n * 21), 0.8, layout)
  local height = (bottom - top) / n
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
        local y = i + top + (k - 0.5) * height
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
        add(plots, "NaN with boxes fillcolor rgb '%s' title %s", shade(palette.PLAIN, k, n),
            quote(shown(f.series[k], layout)))
      end
    end
    if #errors > 0 then
      block(out, "errors" .. k, errors)
      add(plots, "$errors%d using 1:2:3:4 with xerrorbars pointtype -1 linewidth 1 linecolor rgb '#333333' notitle", k)
    end
  end
  local width = add_rows(out, plots, f.rows, most, layout)
  add(out, "set rmargin %d", longest(texts, layout) + 3)
  if f.mark then -- the line must not cross labels
    local x = number(f.mark)
    for i = 1, layout.is_narrow and #f.rows or 0 do
      add(out, "set arrow from %s,%s to %s,%s nohead dashtype 2 linecolor rgb '#666666' front", x, number(i + top), x,
          number(i + bottom))
    end
    if not layout.is_narrow then
      add(out, "set arrow from %s, graph 0 to %s, graph 1 nohead dashtype 2 linecolor rgb '#666666' front", x, x)
    end
  end
  local rows = math.max(#f.rows * row_height, 75)
  return 146 + rows + add_key(out, f, f.series, width - layout.letter * longest(texts, layout), layout)
end

function KINDS.stack(f, out, plots, _, layout)
  local top, bottom, row_height = row_of(34, 0.7, layout)
  local start, most = {}, 0
  for k, name in ipairs(f.series) do
    local bars = {}
    for i, row in ipairs(f.rows) do
      local stop = (start[i] or 0) + row[k]
      bars[i] = { number(row[k]), i, number(start[i] or 0), number(stop), number(i + top),
                  number(i + bottom) }
      start[i], most = stop, math.max(most, stop)
    end
    block(out, "part" .. k, bars)
    add(plots, "$part%d using 1:2:3:4:5:6 with boxxyerror fillcolor rgb '%s' title %s", k,
        palette.PHASES[name] or colour(k), quote(shown(name, layout)))
  end
  local width = add_rows(out, plots, f.rows, most * 1.05, layout)
  return 146 + math.max(#f.rows * row_height, 75) + add_key(out, f, f.series, width, layout)
end

-- The range of the numbers from low to high, with a small margin on both sides.
local function range(axis, low, high, share)
  local margin = math.max(high - low, math.abs(high) * 0.02, 1e-9) * share
  local start = low >= 0 and math.max(0, low - margin) or low - margin
  return ("set %srange [%s:%s]"):format(axis, number(axis == "x" and low - margin or start), number(high + margin))
end

-- Whether most curves have most of their points in the first quarter of the axis, because a few curves are much longer.
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

-- The extent of lines: left to right, low to high, the x values, and how many curves have intervals.
local function extent(f)
  local xs, ys, tics, known, intervals = {}, { f.mark }, {}, {}, 0
  for _, series in ipairs(f.series) do
    local has = false
    for _, p in ipairs(series.points) do
      for _, y in ipairs { p.y, p.low, p.high } do ys[#ys + 1] = y end
      xs[#xs + 1], has = p.x, has or p.low ~= nil
      if not known[p.x] then
        known[p.x] = true
        tics[#tics + 1] = p.x
      end
    end
    intervals = intervals + (has and 1 or 0)
  end
  return { left = math.min(table.unpack(xs)), right = math.max(table.unpack(xs)), low = math.min(table.unpack(ys)),
           high = math.max(table.unpack(ys)), tics = tics, intervals = intervals }
end

-- Selects marks at these values such that their numbers do not overlap; place(value) is in pixels.
local function roomy(values, place, layout)
  local kept, free = {}, -math.huge
  table.sort(values)
  for _, value in ipairs(values) do
    local half, at = layout.letter * #number(value) / 2, place(value)
    if at - half >= free then kept[#kept + 1], free = number(value), at + half + layout.letter end
  end
  return kept
end

-- Adds the axes of lines. Returns the pixels that further lines of the axes' labels take.
local function add_axes(out, f, all, logarithmic, layout)
  local xlabel, more = wrap(f.xlabel .. (logarithmic and " (logarithmic axis)" or ""), layout)
  local function at(x) return logarithmic and math.log(x) or x end
  local function place(x) -- in pixels
    local length = at(all.right) - at(all.left)
    return length > 0 and 0.94 * (layout.width - 80) * (at(x) - at(all.left)) / length or 0
  end
  if logarithmic then
    local margin = (all.right / all.left) ^ 0.03
    add(out, "set logscale x 2\nset xlabel %s", xlabel)
    add(out, "set xrange [%s:%s]", number(all.left / margin), number(all.right * margin))
  else
    add(out, range("x", all.left, all.right, 0.03))
  end
  add(out, range("y", all.low, all.high, 0.06))
  if all.intervals > 0 then add(out, "set ylabel %s", (wrap(f.ylabel .. ", 95 % interval", layout))) end
  if #all.tics <= MOST_TICS then
    add(out, "set xtics (%s)", table.concat(roomy(all.tics, place, layout), ", "))
  elseif layout.is_narrow and not logarithmic then
    add(out, "set xtics %s", number(step(all.right - all.left, layout.tics)))
  end
  add(out, "set grid")
  return more
end

-- Curves that coincide are drawn on top of each other like ribbons, the last one narrowest. Intervals at the same x are
-- next to each other.
function KINDS.lines(f, out, plots, styles, layout)
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
        quote(shown(series.label, layout)))
    labels[k] = series.label
  end
  if f.mark then add(plots, "%s with lines dashtype 2 linecolor rgb '#666666' notitle", number(f.mark)) end
  local more = add_axes(out, f, all, logarithmic, layout)
  local height, margin = 500, 100
  if layout.is_narrow then height, margin = 400, 30 end
  return height + more + add_key(out, f, labels, layout.width - margin, layout)
end

-- Cells touch each other, whatever the distance of their values. Each shows its number; cells without a run stay empty.
-- The narrow layout has no colour scale, and no numbers where they would not fit.
function KINDS.heat(f, out, plots, _, layout)
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
  local reach = math.max(math.abs(high - 1), math.abs(low - 1), 0.05) -- range of the colours below and above 1
  for i, c in ipairs(cells) do
    local ink = math.abs(c.z - 1) / reach > 0.6 and 0xffffff or 0x111111
    cells[i] = { c.ix, c.iy, c.ix - 0.5, c.ix + 0.5, c.iy - 0.5, c.iy + 0.5, number(c.z),
                 label(("%.2f"):format(c.z)), ink }
  end
  block(out, "cells", cells)
  local cell = (layout.width - 100) / #f.xs -- pixels
  for _, axis in ipairs { { "x", f.xs }, { "y", f.ys } } do
    local tics = {}
    for i, value in ipairs(axis[2]) do tics[i] = tic(number(value), i, layout) end
    add(out, "set %stics (%s) scale 0", axis[1], table.concat(tics, ", "))
    add(out, "set %srange [0.5:%d.5]", axis[1], #axis[2])
  end
  add(out, "set palette defined (-1 '#8c3a00', -0.5 '#e69f50', 0 '#f7f7f7', 0.5 '#5aa5d6', 1 '#004a80')")
  add(out, "set cbrange [%s:%s]", number(1 - reach), number(1 + reach))
  add(out, "set cblabel %s", quote(f.zlabel))
  add(plots, "$cells using 1:2:3:4:5:6:7 with boxxyerror fillcolor palette notitle")
  if layout.is_narrow then add(out, "unset colorbox") end
  if not layout.is_narrow or cell > 4 * layout.letter then
    add(plots, "$cells using 1:2:8:9 with labels textcolor rgb variable notitle")
  end
  return 170 + 38 * math.max(#f.ys, 4)
end

local SVG = "set terminal svg noenhanced size %d,%d name '%s' background '#ffffff' font 'sans-serif,%d'"
local PNG = "set terminal pngcairo noenhanced size %d,%d background '#ffffff' font 'sans,%g' fontscale 1.5"

-- The file of a figure's narrow layout.
local function narrow_file(f) return f.name .. ".narrow.svg" end

-- The gnuplot commands of one figure.
local function commands(f, styles, layout)
  local plots, title, more = {}, wrap(f.title, layout)
  local xlabel, xlabel_more = wrap(f.xlabel, layout)
  local out = {
    "reset session", "set encoding utf8", "set xlabel " .. xlabel, "set ylabel " .. (wrap(f.ylabel or "", layout)),
    "set style fill solid 1 noborder", "set border 3 linecolor rgb '#555555'",
    "set tics nomirror textcolor rgb '#222222'", "set key noautotitle", "set errorbars 1.2",
  }
  local height = KINDS[f.kind](f, out, plots, styles, layout) + xlabel_more
  if f.kind == "heat" or #(f.series or {}) == 1 then
    add(out, "unset key; set title %s", title)
    if f.kind == "heat" then height = height + more end
  end
  local plot = "plot " .. table.concat(plots, ", \\\n  ")
  local name = f.name:gsub("%W", "_")
  add(out, SVG, layout.width, height, layout.is_narrow and name .. "_narrow" or name, layout.font)
  add(out, "set output %s\n%s", gnuplot.file(layout.is_narrow and narrow_file(f) or f.name .. ".svg"), plot)
  if not layout.is_narrow then
    add(out, PNG, WIDE.width * 3 // 2, height * 3 // 2, 0.8 * WIDE.font) -- size in points
    add(out, "set output %s\n%s", gnuplot.file(f.name .. ".png"), plot)
  end
  add(out, "set output")
  return table.concat(out, "\n") .. "\n"
end

-- The gnuplot script that draws the figures into the folder where it runs.
function figure.script(figures, is_narrow)
  local all, styles = {}, styles_new()
  for i, f in ipairs(figures) do all[i] = commands(f, styles, is_narrow and NARROW or WIDE) end
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

-- Draws the figures into folder as NAME.svg and NAME.png, and leaves the script there. Returns true; false and a
-- one-line message if gnuplot is missing or fails; or nil and a message if the folder cannot be written.
function figure.draw(figures, folder)
  local path = folder .. "/" .. SCRIPT
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local written, reason = file:write(figure.script(figures))
  local closed, why = file:close()
  if not written or not closed then return nil, ("%s: %s"):format(path, reason or why) end
  local drawn, refusal = gnuplot.run(folder, SCRIPT)
  if not drawn then return false, "the figures were not drawn: " .. refusal end
  for _, f in ipairs(figures) do
    local file_name = folder .. "/" .. f.name
    if not whole(file_name .. ".svg", "</svg>") or not whole(file_name .. ".png", "IEND") then
      return nil, file_name .. ": the file is incomplete: is the disk full?"
    end
  end
  return true
end

-- Returns the SVG texts of the layouts for narrow screens; or false and a one-line message. gnuplot writes them into
-- this folder, from which they are removed.
function figure.narrow(figures, folder)
  local script, texts = os.tmpname(), {}
  local file = assert(io.open(script, "wb"))
  file:write(figure.script(figures, true))
  file:close()
  local drawn, why = gnuplot.run(folder, script)
  os.remove(script)
  for i, f in ipairs(figures) do
    local path = ("%s/%s"):format(folder, narrow_file(f))
    local svg = drawn and io.open(path, "rb")
    if svg then
      texts[i] = svg:read "a"
      svg:close()
    end
    os.remove(path)
    if drawn and not (svg and texts[i]:find("</svg>", 1, true)) then
      drawn, why = false, path .. ": the file is incomplete"
    end
  end
  return drawn and texts or false, why
end

return figure
