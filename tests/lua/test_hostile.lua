-- Experiments and traces whose names contain characters with a meaning for gnuplot, SVG, HTML, Markdown, LaTeX or a
-- spreadsheet.
local figure = require "dt.draw.figure"
local gnuplot = require "dt.gnuplot"
local lu = require "luaunit"
local page = require "dt.draw.page"
local palette = require "dt.draw.palette"
local report = require "dt.report"
local tables = require "dt.draw.tables"
local trace_page = require "dt.trace_page"
local trees = require "dt.trace_trees"
local visible = require "dt.draw.visible"

-- Each name, and what a page shows for it.
local NAMES = {
  { "'quoted" }, { "two ''quotes'' \"x\"" }, { "'" }, { [[back\slash\n\047]] }, { "$HOME `id` @x" }, { "{a}_{b}^{c}" },
  { "%d %s 100%" }, { "END_OF_DATA" }, { "a, b; c # d" }, { "</title><script>alert(1)</script>&amp;" }, { "ü – “é”" },
  { "a\nb\tc\27[31m\0d", "a b c [31m d" }, { "c\u{9b}1m\u{202e}\u{2028}\u{2066}\u{ffff}e", "c 1m    e" },
  { ("n"):rep(5000) .. "end", ("n"):rep(29) .. "…" .. ("n"):rep(11) .. "end" }, { ("ü"):rep(44) },
  { ("ü"):rep(45), ("ü"):rep(29) .. "…" .. ("ü"):rep(14) },
}

local function contents(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function in_folder(use)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local ok, message = xpcall(use, debug.traceback, folder)
  os.execute("rm -r " .. folder)
  assert(ok, message)
end

local function figures_of(name, i)
  local curve = { label = name, points = { { x = 1, y = 2, low = 1, high = 3 }, { x = 2, y = 3 } } }
  local bar = { label = name, { y = 1, text = "1" }, { y = 2, text = "2" } }
  return {
    { kind = "bars", name = "bars-" .. i, title = name, xlabel = name, series = { name, "other" }, rows = { bar } },
    { kind = "stack", name = "stack-" .. i, title = name, xlabel = name, series = { name, "other" },
      rows = { { label = name, 1, 2 } } },
    { kind = "lines", name = "lines-" .. i, title = name, xlabel = name, ylabel = name, series = { curve, curve } },
    { kind = "heat", name = "heat-" .. i, title = name, xlabel = name, ylabel = name, zlabel = name, xs = { 1, 2 },
      ys = { 1, 2 }, cells = { { 1, 2 }, { 2, 1 } } },
  }
end

TestFigures = {}

function TestFigures.test_whatever_a_name_holds_all_figures_are_drawn_and_show_it()
  if not os.execute "command -v gnuplot >/dev/null" then return lu.skip "no gnuplot" end
  in_folder(function(folder)
    local all = {}
    for i, name in ipairs(NAMES) do
      for _, f in ipairs(figures_of(name[1], i)) do all[#all + 1] = f end
    end
    lu.assertEquals({ figure.draw(all, folder) }, { true })
    for _, f in ipairs(all) do
      local name, svg = NAMES[tonumber(f.name:match "%d+")], contents(("%s/%s.svg"):format(folder, f.name))
      local shown = (name[2] or visible.cut(name[1], 44)):gsub("&", "&amp;"):gsub("<", "&lt;")
      if f.kind ~= "heat" then
        local known = {}
        for text in svg:gmatch "<text[^>]*>(.-)</text>" do known[text] = true end
        lu.assertTrue(known[shown], f.name .. " does not show " .. shown)
      end
      lu.assertNil(svg:find "[\0-\8\11-\31]", f.name)
      lu.assertNil(svg:find("<script>", 1, true), f.name)
    end
  end)
end

function TestFigures.test_what_a_program_writes_to_is_a_file()
  lu.assertEquals(gnuplot.file "|touch 'x'.svg", [["./\174touch \047x\047.svg"]])
  lu.assertEquals(gnuplot.file "/a-b/c.svg", '"/a-b/c.svg"')
end

TestVisible = {}

function TestVisible.test_names_are_cut_in_the_middle_at_characters()
  lu.assertEquals({ visible.cut("üüüüüüü", 7), visible.cut("üüüüüüü", 6), visible.cut("abcdefg", 4) },
                  { "üüüüüüü", "üüüü…ü", "ab…g" })
end

function TestVisible.test_controls_are_blanks_or_pictures_and_text_stays()
  local kept = "ü–é\u{200d}😀\u{2027}\u{202f}\u{2065}\u{206a}\u{fffd}\u{a0}"
  lu.assertEquals({ visible.line(kept), visible.pictures(kept, {}) }, { kept, kept })
  lu.assertEquals(visible.line "a\0\31\127\u{80}\u{9f}\u{2028}\u{202e}\u{2066}\u{2069}\u{fffe}\u{ffff}b",
                  "a" .. (" "):rep(11) .. "b")
  lu.assertEquals(visible.lines "a\nb\27", "a\nb ")
  lu.assertEquals(visible.pictures("\0\27\127\n\t\u{9b}", { ["\n"] = true, ["\t"] = "⇥" }), "␀␛␡\n⇥\u{fffd}")
end

TestDocuments = {}

-- A report's files in memory: markdown, html, tex, csv.
local function written(names, set)
  local runs = {}
  for i, name in ipairs { "ar", table.unpack(names) } do
    runs[i] = { schema = "dtrun.run/1", arm = name, policy = i == 1 and "ar" or "linear", params = {}, axes = {},
                set = set or "s", prompt = "1", tokens = 9, ["repeat"] = 1, finish_reason = "length",
                prompt_tokens = 1, stats = { tokens_per_second = i, output_hash = "0", iterations = 1 } }
  end
  local head = { experiment = names[1], protocol = { [names[1]] = names[1] }, machine = names[1], backend = "cpu",
                 threads = 1, target = "t", version = "0" }
  local files = {}
  in_folder(function(folder)
    assert(report.write({ { head = head, runs = runs } }, { "m.jsonl" }, folder))
    for _, kind in ipairs { "md", "html", "tex", "csv" } do files[kind] = contents(folder .. "/report." .. kind) end
  end)
  return files
end

function TestDocuments.test_no_control_character_is_written()
  local name = "a\27[31m\0b\u{9b}1m\u{202e}"
  for kind, text in pairs(written({ name }, name)) do
    lu.assertNil(text:find "[\0-\8\11-\31\127]", kind)
    lu.assertNil(text:find("\u{9b}", 1, true), kind)
    lu.assertNil(text:find("\u{202e}", 1, true), kind)
    lu.assertNil(kind == "html" and text:find "%%1B" or kind == "html" and text:find "%%00" or nil)
    lu.assertStrContains(text, "a [31m b 1m")
  end
end

function TestDocuments.test_names_are_no_tags_links_or_cells()
  local files = written({ "<script>alert(1)</script>", "[x](javascript:alert(2))", [[a\|b]], "`c` *d* __e__" },
    "![i](http://x)")
  lu.assertNil(files.md:find("<script", 1, true))
  lu.assertNil(files.md:find("](java", 1, true))
  lu.assertNil(files.md:find("![i](", 1, true))
  lu.assertStrContains(files.md, "| [x]\\(javascript:alert(2)) ")
  lu.assertStrContains(files.md, "| a\\\\\\|b ") -- to Markdown a\ and | within the cell
  lu.assertStrContains(files.md, "| \\`c\\` \\*d\\* \\_\\_e__ ")
  lu.assertNil(files.html:find("<script>alert", 1, true))
  lu.assertStrContains(files.html, "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>")
end

function TestDocuments.test_own_words_of_markdown_stay_as_they_are()
  local text = "fixed_tree B=1 D0=3: 2.88x [2.50, 3.20] ~ (95 % interval), 1-2"
  lu.assertEquals(tables.markdown_text(text), text)
end

function TestDocuments.test_a_paragraph_begins_neither_a_heading_nor_a_list_nor_a_target_of_links()
  for text, shown in pairs { ["# a"] = "\\# a", ["- a"] = "\\- a", ["+ a"] = "\\+ a", ["> a"] = "&gt; a",
                             ["12. a"] = "12\\. a", ["[a]: http://x"] = "\\[a]: http://x", ["=="] = "\\==",
                             ["  a"] = "a" } do
    lu.assertEquals(page.markdown({ title = "t", { text = text } }, false), "# t\n\n" .. shown .. "\n")
  end
end

function TestDocuments.test_no_cell_is_a_formula_and_numbers_stay_numbers()
  local csv = written({ "=1+1", "+cmd|' /C calc'!A0", "-x", "@sum", "\t=1", "\r=2", "-5", "-0.5e3", "a=b" }).csv
  for _, cell in ipairs { "'=1+1", "'+cmd|' /C calc'!A0", "'-x", "'@sum", "' =1", "' =2", "-5", "-0.5e3", "a=b" } do
    lu.assertStrContains(csv, ('"%s",speed,'):format(cell))
  end
  for _, cell in ipairs { '"=', '"+', '"@', '" ' } do lu.assertNil(csv:find(cell, 1, true), cell) end
end

TestTraces = {}

function TestTraces.test_a_trace_of_hostile_names_and_texts_makes_a_page_of_plain_text()
  local text = "</script><b>\27[31m\0\u{9b}\u{202e}\n\tend"
  local found = {
    head = { policy = text, prompt = text, target = text, draft = text, backend = text, params = { [text] = text } },
    iterations = { {
      nodes = { { id = 0, token = 1, text = text },
                { id = 1, parent = 0, token = 2, text = text, p = 0.5, kept = true } },
      bonus = { token = 3, text = text }, committed = { { token = 3, text = text, origin = "bonus" } },
      ms = { draft = 1, verify = 1, commit = 1, policy = 1 },
    } },
  }
  local html = trace_page(found, trees.draw(found.iterations, false))
  lu.assertNil(html:find "[\0-\8\11-\31\127]")
  lu.assertNil(html:find("\u{9b}", 1, true))
  lu.assertNil(html:find("\u{202e}", 1, true))
  lu.assertNil(html:find("<b>", 1, true))
  lu.assertEquals(select(2, html:gsub("</script>", "")), 2)
  local data = assert(require "dt.json".decode((html:match '<script type="application/json" id="data">(.-)</script>')))
  lu.assertStrContains(html, ".verify { background: " .. palette.PHASES.verify) -- as in a report's figures
  lu.assertEquals(data.prompt, "</script><b>␛[31m␀\u{fffd}\u{fffd}\n\tend")
end

os.exit(lu.LuaUnit.run())
