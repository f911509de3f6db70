-- Writes tables of a report as Markdown, HTML and LaTeX: { columns = {"arm", "tokens/s"}, rows = {{"ar", "100.0"}, ..}
-- }. Cells are texts; the first column has words, and the others have numbers, which are aligned to the right.
local visible = require "dt.draw.visible"

local tables = {}

local function length(text) return utf8.len(text) or #text end

local function line(cells, width)
  local padded = {}
  for c, cell in ipairs(cells) do
    local space = (" "):rep(width[c] - length(cell)) -- none if a cell is wider
    padded[c] = c == 1 and cell .. space or space .. cell
  end
  return "| " .. table.concat(padded, " | ") .. " |\n"
end

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

-- Escapes a text for Markdown, on one line, so that it makes no tags, links, emphasis or code.
function tables.markdown_text(text)
  text = visible.line(text):gsub("[\\`*|]", "\\%0"):gsub("[&<>]", ENTITIES):gsub("%]([%[(])", "]\\%1")
  return (text:gsub("%f[%w_]_+", function(run) return ("\\_"):rep(#run) end))
end

local WIDEST = 60 -- columns are padded to at most this many characters

-- Pads each column to one width, so that the Markdown is readable as text.
function tables.markdown(t)
  local rows, width = {}, {}
  for i = 0, #t.rows do
    local cells = {}
    for c, cell in ipairs(i == 0 and t.columns or t.rows[i]) do cells[c] = tables.markdown_text(cell) end
    rows[i + 1] = cells
  end
  for c in ipairs(t.columns) do
    width[c] = 3
    for _, row in ipairs(rows) do width[c] = math.max(width[c], math.min(length(row[c]), WIDEST)) end
  end
  local lines, rule = {}, {}
  for c, w in ipairs(width) do rule[c] = c == 1 and ("-"):rep(w) or ("-"):rep(w - 1) .. ":" end
  for i, row in ipairs(rows) do lines[i] = line(row, width) end
  table.insert(lines, 2, line(rule, width))
  return table.concat(lines)
end

-- Escapes a text for elements and "attributes" of HTML and SVG.
function tables.escape(text) return (visible.lines(text):gsub('[&<>"]', ENTITIES)) end

-- A heading may break after a slash.
local function heading(text) return (tables.escape(text):gsub("/", "/<wbr>")) end

function tables.html(t)
  local out = { "<table>\n" }
  for i = 0, #t.rows do
    local tag, shown = i == 0 and "th" or "td", i == 0 and heading or tables.escape
    out[#out + 1] = "<tr>"
    for _, cell in ipairs(i == 0 and t.columns or t.rows[i]) do
      out[#out + 1] = ("<%s>%s</%s>"):format(tag, shown(cell), tag)
    end
    out[#out + 1] = "</tr>\n"
  end
  out[#out + 1] = "</table>\n"
  return table.concat(out)
end

local LATEX = { ["\\"] = "\\textbackslash{}", ["~"] = "\\textasciitilde{}", ["^"] = "\\textasciicircum{}" }
for special in ("#$%&_{}"):gmatch "." do LATEX[special] = "\\" .. special end

local function latex_text(text) return (visible.line(text):gsub("[\\~^#$%%&_{}]", LATEX):gsub("±", "$\\pm$")) end

-- A LaTeX tabular for the package booktabs.
function tables.latex(t)
  local lines = { "\\begin{tabular}{l" .. ("r"):rep(#t.columns - 1) .. "}", "\\toprule" }
  for i = 0, #t.rows do
    local cells = {}
    for c, cell in ipairs(i == 0 and t.columns or t.rows[i]) do cells[c] = latex_text(cell) end
    lines[#lines + 1] = table.concat(cells, " & ") .. " \\\\"
    if i == 0 then lines[#lines + 1] = "\\midrule" end
  end
  lines[#lines + 1] = "\\bottomrule\n\\end{tabular}\n"
  return table.concat(lines, "\n")
end

return tables
