-- A document of headings, texts, tables and figures, as Markdown and as one HTML page that needs no other file.
--
--   { title =, { heading = "Speed" }, { text = "..." }, { table = {...} }, { figure = {...} }, .. }
local tables = require "dt.tables"
local visible = require "dt.visible"

local page = {}

-- Text of a paragraph of Markdown: what it begins with makes neither a heading nor a list.
local function paragraph(text)
  return (tables.markdown_text(text):gsub("^%s+", ""):gsub("^[#+=~[-]", "\\%0"):gsub("^(%d+)([.)])", "%1\\%2"))
end

-- figures: whether their files are there, in the same folder.
function page.markdown(document, figures)
  local escape = tables.markdown_text
  local out = { "# " .. escape(document.title) .. "\n" }
  for _, item in ipairs(document) do
    if item.heading then
      out[#out + 1] = "## " .. escape(item.heading) .. "\n"
    elseif item.text then
      out[#out + 1] = paragraph(item.text) .. "\n"
    elseif item.table then
      out[#out + 1] = tables.markdown(item.table)
    elseif figures then
      out[#out + 1] = ("![%s](%s.svg)\n"):format(escape(item.figure.title):gsub("[][]", "\\%0"), item.figure.name)
    end
  end
  return table.concat(out, "\n")
end

-- The tables, each behind the text before it, to be put into a paper (\\usepackage{booktabs}).
function page.latex(document)
  local out, before = {}, document.title
  for _, item in ipairs(document) do
    before = item.heading or item.text or before
    if item.table and not item.table.facts then
      out[#out + 1] = ("%% %s\n%s"):format(visible.line(before), tables.latex(item.table))
    end
  end
  return table.concat(out, "\n")
end

local STYLE = [[
:root { color-scheme: light dark; --ink: #1c2024; --dim: #5b6570; --paper: #fff; --line: #d8dde3; --hover: #f4f7fa;
  --link: #0060a0; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --dim: #a3adb8; --paper: #14181c; --line: #38414a; --hover: #1f262d; --link: #7fbdf0; }
  figure svg { filter: invert(.91) hue-rotate(180deg); }
}
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.2rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
nav { margin: 0 0 1.5rem; color: var(--dim); }
nav a { color: var(--link); text-decoration: none; margin-right: 1.1rem; white-space: nowrap; }
nav a:hover { text-decoration: underline; }
p { margin: .7rem 0; }
.wide { overflow-x: auto; margin: 1rem 0 1.6rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--dim); border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; padding-left: .2rem; }
tr:hover td { background: var(--hover); }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
table.facts td:first-child { color: var(--dim); white-space: nowrap; vertical-align: top; }
figure { margin: 1.4rem 0; }
figure svg { display: block; max-width: 100%; height: auto; }
@media print {
  :root { color-scheme: light; --ink: #000; --dim: #444; --line: #bbb; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  figure, tr { break-inside: avoid; }
  .wide { overflow: visible; }
  table { width: 100%; font-size: 7pt; }
  th, td { padding: .15rem .25rem; white-space: normal; overflow-wrap: anywhere; }
}
]]

local function anchor(n) return "part" .. n end

-- A link that saves a text as a file of this name: the text is in the link.
local function download(name, text)
  local encoded = text:gsub("[^%w.,_-]", function(c) return ("%%%02X"):format(c:byte()) end)
  return ('<a download="%s" href="data:text/plain;charset=utf-8,%s">%s</a>'):format(name, encoded, name)
end

-- drawing(figure) gives a figure's SVG, or nil where there is none; files: { { name, text }, .. } to be saved from the
-- page.
function page.html(document, drawing, files)
  local escape = tables.escape
  local links, out, n = {}, {}, 0
  for _, item in ipairs(document) do
    if item.heading then
      n = n + 1
      links[n] = ('<a href="#%s">%s</a>'):format(anchor(n), escape(item.heading))
      out[#out + 1] = ('<h2 id="%s">%s</h2>\n'):format(anchor(n), escape(item.heading))
    elseif item.text then
      out[#out + 1] = ("<p>%s</p>\n"):format(escape(item.text))
    elseif item.table then
      local html = tables.html(item.table)
      if item.table.facts then
        html = html:gsub("<table>", '<table class="facts">', 1):gsub("<tr><th>.-</tr>\n", "", 1)
      end
      out[#out + 1] = '<div class="wide">' .. html .. "</div>\n"
    else
      local svg = drawing(item.figure)
      if svg then out[#out + 1] = "<figure>" .. svg:gsub("^.-<svg", "<svg", 1) .. "</figure>\n" end
    end
  end
  for _, file in ipairs(files or {}) do links[#links + 1] = download(table.unpack(file)) end
  return table.concat {
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    "<title>", escape(document.title), "</title>\n<style>\n", STYLE, "</style>\n</head>\n<body>\n<h1>",
    escape(document.title), "</h1>\n<nav>", table.concat(links, "\n"), "</nav>\n",
    table.concat(out), "</body>\n</html>\n",
  }
end

return page
