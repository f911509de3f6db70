-- Writes a document of headings, texts, tables and figures as Markdown and as one HTML page that needs no other file.
--
--   { title =, { heading = "Speed" }, { text = "..." }, { table = {...} }, { figure = {...} }, .. }
--
-- A heading may have link, the text of links to it, and folded: on the page a click opens its section. A text that ends
-- in a colon is the heading of the table after it.
local tables = require "dt.draw.tables"
local visible = require "dt.draw.visible"

local page = {}

-- Escapes the text of a Markdown paragraph, so that it does not begin a heading or a list.
local function paragraph(text)
  return (tables.markdown_text(text):gsub("^%s+", ""):gsub("^[#+=~[-]", "\\%0"):gsub("^(%d+)([.)])", "%1\\%2"))
end

-- figures: whether their files are in the same folder.
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

-- The tables, each after the text before it, for a paper (\\usepackage{booktabs}).
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

-- What gnuplot draws follows the page's theme: letters, axes, the grid, error bars; but not the numbers in cells of a
-- map.
local STYLE = [[
:root { color-scheme: light dark; --ink: #1c2024; --dim: #5b6570; --paper: #fff; --line: #d8dde3; --hover: #f4f7fa;
  --link: #0060a0; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --dim: #a3adb8; --paper: #14181c; --line: #38414a; --hover: #1f262d; --link: #7fbdf0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.2rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2, summary { font-size: 1.2rem; font-weight: 700; margin: 2.6rem 0 .8rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
summary { cursor: pointer; }
nav { margin: 0 0 1.5rem; color: var(--dim); }
nav div { margin: .15rem 0; }
nav a { color: var(--link); text-decoration: none; margin-right: 1.1rem; }
nav a:hover { text-decoration: underline; }
nav a.lead { font-weight: 600; }
p { margin: .7rem 0; }
p.of { margin: 1.2rem 0 .2rem; font-weight: 600; }
.wide { overflow-x: auto; margin: .6rem 0 1.6rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--dim); white-space: normal; overflow-wrap: normal; vertical-align: bottom;
  border-bottom: 2px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: .2rem; white-space: normal; min-width: 8rem;
  max-width: 26rem; position: sticky; left: 0; background: var(--paper); }
tr:hover td { background: var(--hover); }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
table.facts td:first-child { color: var(--dim); vertical-align: top; }
figure { margin: 1.4rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg + svg { display: none; }
figure svg g > rect[fill="#ffffff"] { fill: none; }
figure svg text { fill: var(--ink); }
figure.heat svg [fill="rgb(17,17,17)"] text { fill: #111; }
figure.heat svg [fill="rgb(255,255,255)"] text { fill: #fff; }
figure svg path[stroke="gray"] { stroke: var(--line); }
figure svg path[stroke="rgb( 85,  85,  85)"], figure svg path[stroke="rgb(102, 102, 102)"] { stroke: var(--dim); }
figure svg path[stroke="rgb( 51,  51,  51)"], figure svg path[stroke="black"] { stroke: var(--ink); }
@media screen and (prefers-color-scheme: dark) { /* lines of series, whose colours are for white, stand out */
  figure.lines svg :is(use, path[stroke^="rgb("]:not([stroke="rgb( 85,  85,  85)"], [stroke="rgb( 51,  51,  51)"],
    [stroke="rgb(102, 102, 102)"])) { filter: brightness(1.6); }
}
@media screen and (max-width: 46rem) { /* figures have a narrow layout; tables are moved sideways, as shadows say */
  .wide { background: linear-gradient(to right, var(--paper), transparent) left / 2rem 100% no-repeat local,
    linear-gradient(to left, var(--paper), transparent) right / 2rem 100% no-repeat local,
    linear-gradient(to right, var(--dim), transparent) left / .7rem 100% no-repeat scroll,
    linear-gradient(to left, var(--dim), transparent) right / .7rem 100% no-repeat scroll; }
  body { padding: 1.2rem .9rem 3rem; }
  figure.two svg:first-child { display: none; }
  figure svg + svg { display: block; max-width: 34rem; margin: 0 auto; }
  th:first-child, td:first-child { max-width: 9rem; }
}
@media print {
  :root { color-scheme: light; --ink: #000; --dim: #444; --line: #bbb; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2, summary, p.of, h2 + p { break-after: avoid; }
  figure, .wide, tr, p { break-inside: avoid; }
  figure.two svg:first-child { display: block; }
  figure svg + svg { display: none; }
  figure svg { max-height: 19cm; } /* a page holds it with its heading */
  figure + p.of, figure + .wide { break-before: avoid; }
  .wide { overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
  h2, summary { margin-top: 1.4rem; }
  table { width: 100%; font-size: 7pt; line-height: 1.3; }
  th, td { padding: .12rem .25rem; white-space: normal; overflow-wrap: anywhere; }
  th:first-child, td:first-child { min-width: 0; position: static; }
}
]]

local function anchor(n) return "part" .. n end

-- A link that contains a text and saves it as a file of this name.
local function download(name, text)
  local encoded = text:gsub("[^%w.,_-]", function(c) return ("%%%02X"):format(c:byte()) end)
  return ('<a download="%s" href="data:text/plain;charset=utf-8,%s">%s</a>'):format(name, encoded, name)
end

-- drawing(figure) returns a figure's SVG and its SVG for narrow screens; nil if there is none. files: { { name, text },
-- .. } that the page can save.
function page.html(document, drawing, files)
  local escape = tables.escape
  local links, out, n, open = {}, {}, 0, false
  for _, item in ipairs(document) do
    if item.heading then
      n = n + 1
      local lead = item.link and not item.folded
      links[#links + 1] = ('%s<a%s href="#%s">%s</a>'):format(lead and n > 1 and "</div>\n<div>" or "",
        lead and ' class="lead"' or "", anchor(n), escape(item.link or item.heading))
      if open then out[#out + 1] = "</details>\n" end
      open = item.folded
      out[#out + 1] = (open and '<details id="%s">\n<summary>%s</summary>\n' or '<h2 id="%s">%s</h2>\n'):format(
        anchor(n), escape(item.heading))
    elseif item.text then
      out[#out + 1] = ("<p%s>%s</p>\n"):format(item.text:find ":$" and ' class="of"' or "", escape(item.text))
    elseif item.table then
      local html = tables.html(item.table)
      if item.table.facts then
        html = html:gsub("<table>", '<table class="facts">', 1):gsub("<tr><th>.-</tr>\n", "", 1)
      end
      out[#out + 1] = '<div class="wide" tabindex="0">' .. html .. "</div>\n"
    else
      local svg, narrow = drawing(item.figure)
      if svg then
        out[#out + 1] = ('<figure class="%s%s" aria-label="%s">'):format(item.figure.kind, narrow and " two" or "",
          escape(item.figure.title))
        for _, one in ipairs { svg, narrow } do out[#out + 1] = one:gsub("^.-<svg", "<svg", 1) end
        out[#out + 1] = "</figure>\n"
      end
    end
  end
  if open then out[#out + 1] = "</details>\n" end
  for i, file in ipairs(files or {}) do
    links[#links + 1] = (i == 1 and "</div>\n<div>" or "") .. download(table.unpack(file))
  end
  return table.concat {
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    "<title>", escape(document.title), "</title>\n<style>\n", STYLE, "</style>\n</head>\n<body>\n<h1>",
    escape(document.title), "</h1>\n<nav><div>", table.concat(links, "\n"), "</div></nav>\n",
    table.concat(out), "</body>\n</html>\n",
  }
end

return page
