-- What a report makes of an experiment's runs: dt.report and what it is made of, and dt.draw.
local figure = require "dt.draw.figure"
local lu = require "luaunit"
local page = require "dt.draw.page"
local palette = require "dt.draw.palette"
local record = require "dt.record"
local report = require "dt.report"
local summary = require "dt.report.summary"
local tables = require "dt.draw.tables"

local SAMPLE = (arg[0]:match "^(.*/)lua/" or "./") .. "data/experiments/sample.jsonl"

-- A run whose numbers follow from its speed in tokens per second.
local function run(fields)
  local made = { schema = "dtrun.run/1", policy = fields.arm:match "^%w+", params = {}, axes = {}, set = "s",
                 prompt = "s/1", tokens = 100, ["repeat"] = 1, finish_reason = "length", prompt_tokens = 10 }
  for key, value in pairs(fields) do made[key] = value end
  made.speed = nil
  made.stats = { tokens_per_second = fields.speed, output_hash = "0", iterations = 50, tokens_per_iteration = 2.0 }
  return made
end

local function file(runs, protocol)
  return { head = { experiment = "test", protocol = protocol or {}, machine = "m", backend = "cpu", threads = 1,
                    target = "t", version = "0" }, runs = runs }
end

local function names_of(document, key)
  local names = {}
  for _, item in ipairs(document) do
    if item[key] then names[#names + 1] = key == "figure" and item.figure.name or item[key] end
  end
  return names
end

local function figures_of(document)
  local of = {}
  for _, item in ipairs(document) do
    if item.figure then of[item.figure.name] = item.figure end
  end
  return of
end

TestSummary = {}

function TestSummary.test_a_speedup_is_the_mean_over_prompts_of_ratios_to_plain_decoding()
  local s = summary.new(file {
    run { arm = "linear", speed = 150 }, run { arm = "linear", speed = 600, prompt = "s/2" },
    run { arm = "ar", speed = 100 }, run { arm = "ar", speed = 200, prompt = "s/2" },
  })
  local d = s:describe("speedup", { arm = "linear" })
  lu.assertAlmostEquals(d.mean, (1.5 + 3.0) / 2, 1e-12)
  lu.assertEquals(d.n, 2)
  lu.assertEquals(s.arms[1].label, "ar")
  lu.assertAlmostEquals(s:describe("against", { arm = "ar" }, "linear").mean, (100 / 150 + 200 / 600) / 2, 1e-12)
end

function TestSummary.test_repeats_of_a_prompt_count_as_one_prompt()
  local s = summary.new(file {
    run { arm = "ar", speed = 100 }, run { arm = "ar", speed = 300, ["repeat"] = 2 },
    run { arm = "ar", speed = 400, prompt = "s/2" },
  })
  local d = s:describe("speed", { arm = "ar" })
  lu.assertEquals({ d.n, d.mean }, { 2, 300.0 })
end

function TestSummary.test_disturbed_runs_are_nowhere_where_there_are_others()
  local disturbed = run { arm = "linear", speed = 900, ["repeat"] = 2 }
  disturbed.disturbed, disturbed.tries = "x", 3
  local s = summary.new(file { run { arm = "linear", speed = 150 }, disturbed, run { arm = "ar", speed = 100 } })
  lu.assertEquals(s:describe("speedup", { arm = "linear" }).mean, 1.5)
end

function TestSummary.test_the_papers_acceptance_divides_by_the_most_its_tree_commits()
  local s = summary.new(file {
    run { arm = "linear", params = { K = 8 }, speed = 1 }, run { arm = "dynatree", params = { D0 = 5 }, speed = 1 },
    run { arm = "fixed", policy = "fixed_tree", params = { D = 3 }, speed = 1 }, run { arm = "ar", speed = 1 },
  })
  local function acceptance(arm) return (s:describe("paper_acceptance", { arm = arm }) or { mean = false }).mean end
  lu.assertEquals({ acceptance "linear", acceptance "dynatree", acceptance "fixed", acceptance "ar" },
                  { 2 / 8, 2 / 7, 2 / 5, false })
end

function TestSummary.test_a_set_of_one_prompt_is_shown_by_the_prompts_name_and_stored_by_its_folders()
  local runs = {}
  for _, arm in ipairs { "ar", "linear" } do
    runs[#runs + 1] = run { arm = arm, speed = 100, set = "models", prompt = "models/prompt" }
    runs[#runs + 1] = run { arm = arm, speed = 100, set = "files", prompt = "files/story" }
  end
  local document = report.document({ file(runs) }, { "x" })
  for _, f in pairs(figures_of(document)) do lu.assertEquals(f.series, { "models/prompt", "story" }) end
  local texts = table.concat(names_of(document, "text"), "\n")
  lu.assertStrContains(texts, "On models/prompt there are too few texts for an interval")
  lu.assertStrContains(texts, "\nstory:")
  lu.assertEquals(#summary.new(file(runs)):select { set = "models" }, 2)
  runs[1].prompt = "models/other"
  lu.assertEquals(summary.new(file(runs)):set_name "models", "models")
end

-- It counts the bonus token, which the depth does not: it is no share, and exceeds 1.
function TestSummary.test_the_papers_acceptance_is_shown_as_a_ratio()
  local runs = { run { arm = "linear", params = { K = 1 }, speed = 1 }, run { arm = "ar", speed = 1 } }
  local html = page.markdown(report.document({ file(runs) }, { "x" }))
  lu.assertStrContains(html, "tokens/iteration over the paper's depth")
  lu.assertStrContains(html, "2.000")
  lu.assertNil(html:find("200.0 %", 1, true))
end

function TestSummary.test_scales_change_within_an_arm_and_settings_do_not()
  local s = summary.new(file {
    run { arm = "linear", params = { K = 2 }, axes = { chars = 100, depth = 3 }, speed = 1 },
    run { arm = "linear", params = { K = 2 }, axes = { chars = 200, depth = 3 }, prompt = "s/1@200", speed = 1 },
  })
  lu.assertEquals(s.scales, { { name = "chars", values = { 100, 200 } } })
  lu.assertEquals(s.arms[1].settings, { K = 2, depth = 3 })
  lu.assertEquals(#s:select { chars = 200 }, 1)
end

local function check_ways(axis)
  local runs = {}
  for _, way in ipairs { "T = 0", "T = 1" } do
    for _, set in ipairs { "a", "b", "c" } do
      for arm, speed in pairs { ar = 100, linear = way == "T = 0" and 300 or 200 } do
        runs[#runs + 1] = run { arm = arm, speed = speed, set = set, prompt = set .. way, axes = { [axis] = way } }
      end
    end
  end
  local document = report.document({ file(runs) }, { "x" })
  local texts = table.concat(names_of(document, "text"), "\n")
  lu.assertStrContains(texts, "Fastest on T = 0: linear 3.00x [3.00, 3.00]")
  lu.assertStrContains(texts, "Fastest on T = 1: linear 2.00x [2.00, 2.00]")
  lu.assertStrContains(texts, "T = 1: Speedup by set (prompt included):")
  for _, item in ipairs(document) do
    if item.figure and item.figure.name == "x-speedup" then
      lu.assertEquals(item.figure.series, { "T = 0", "T = 1" })
      for _, row in ipairs(item.figure.rows) do
        if row.label == "linear" then lu.assertEquals({ row[1].y, row[2].y }, { 3.0, 2.0 }) end
      end
    end
  end
end

function TestSummary.test_each_way_of_generating_gets_tables_and_bars_of_its_own()
  check_ways "sampling"
  check_ways "reasoning"
end

function TestSummary.test_of_many_arms_the_fastest_of_each_kind_are_chosen()
  local runs = { run { arm = "ar", speed = 100 } }
  for K = 1, 5 do runs[#runs + 1] = run { arm = "linear K=" .. K, params = { K = K }, speed = 100 + K } end
  runs[#runs + 1] = run { arm = "eagle", speed = 50 }
  local s, chosen = summary.new(file(runs)), {}
  for i, arm in ipairs(s:few(s.arms, 4, 2)) do chosen[i] = arm.label end
  lu.assertEquals(chosen, { "ar", "linear K=5", "linear K=4", "eagle" })
  lu.assertEquals(#s:few(s.arms, 7, 2), 7)
end

TestTables = {}

local TABLE = { columns = { "", "a|b" }, rows = { { "ü", "1" }, { "<x>", "22 ± 3" } } }

function TestTables.test_markdown_is_aligned_and_escaped()
  lu.assertEquals(tables.markdown(TABLE),
    "|           |   a\\|b |\n| --------- | -----: |\n| ü         |      1 |\n| &lt;x&gt; | 22 ± 3 |\n")
end

function TestTables.test_latex_is_escaped()
  lu.assertEquals(tables.latex { columns = { "", "a_b %" }, rows = { { "x{^}\\", "1 ± 2 ~" } } },
    "\\begin{tabular}{lr}\n\\toprule\n & a\\_b \\% \\\\\n\\midrule\n"
    .. "x\\{\\textasciicircum{}\\}\\textbackslash{} & 1 $\\pm$ 2 \\textasciitilde{} \\\\\n"
    .. "\\bottomrule\n\\end{tabular}\n")
end

function TestTables.test_html_is_escaped()
  local html = tables.html(TABLE)
  lu.assertStrContains(html, "<th>a|b</th>")
  lu.assertStrContains(html, "<td>&lt;x&gt;</td><td>22 ± 3</td>")
end

function TestTables.test_a_heading_may_be_broken_behind_a_slash_and_a_number_may_not()
  local html = tables.html { columns = { "", "tokens/iteration", "a</b>" }, rows = { { "x", "1/2", "y" } } }
  lu.assertStrContains(html, "<th>tokens/<wbr>iteration</th><th>a&lt;/<wbr>b&gt;</th>")
  lu.assertStrContains(html, "<td>1/2</td>")
end

TestFigure = {}

function TestFigure.test_a_script_draws_each_figure_twice_and_its_texts_are_no_program()
  local script = figure.script { {
    kind = "lines", name = "f", title = "it's", xlabel = "x", ylabel = "y", mark = 1,
    series = { { label = "a_b", points = { { x = 1, y = 2, low = 1.5, high = 2.5 }, { x = 4, y = 3 } } } },
  } }
  lu.assertStrContains(script, 'set output "./f.svg"')
  lu.assertStrContains(script, 'set output "./f.png"')
  lu.assertStrContains(script, [[title "it\047s"]])
  lu.assertStrContains(script, "$line1 << END_OF_DATA\n1 2\n4 3\nEND_OF_DATA")
  lu.assertStrContains(script, "$errors1 << END_OF_DATA\n1 2 1.5 2.5\nEND_OF_DATA")
  lu.assertStrContains(script, "set xtics (1, 4)")
end

local function lines(series)
  return figure.script { { kind = "lines", name = "f", title = "t", xlabel = "x", ylabel = "y", series = series } }
end

local function curve(label, ys, step)
  local points = {}
  for i, y in ipairs(ys) do points[i] = { x = (i - 1) * (step or 1) + 1, y = y } end
  return { label = label, points = points }
end

function TestFigure.test_curves_that_coincide_are_ribbons_of_falling_width()
  local script = lines { curve("a", { 9, 5, 2 }), curve("b", { 9, 5.1, 2, 1 }), curve("c", { 9, 7, 2 }),
                         curve("d", { 9, 5, 2 }) }
  local widths = {}
  for width in script:match "f.svg(.*)set terminal png":gmatch "linewidth (%S+)" do widths[#widths + 1] = width end
  lu.assertEquals(widths, { "7.6", "4.8", "2", "2" })
end

function TestFigure.test_a_few_long_tails_make_the_axis_logarithmic_and_it_says_so()
  local tail = {}
  for i = 1, 64 do tail[i] = 100 / i end
  local script = lines { curve("a", { 9, 5, 2 }), curve("b", { 8, 4, 1 }), curve("tail", tail) }
  lu.assertStrContains(script, 'set logscale x 2\nset xlabel "x (logarithmic axis)"')
  lu.assertNotStrContains(lines { curve("a", { 9, 5, 2 }), curve("tail", tail) }, "logscale") -- most are not near
  lu.assertNotStrContains(lines { curve("a", { 9, 5, 2, 1, 1, 1, 1 }), curve("b", { 9, 5 }) }, "logscale") -- 7 times
  lu.assertStrContains(lines { curve("a", { 9, 5, 2, 1, 1, 1, 1, 1 }), curve("b", { 9 }), curve("c", { 8, 1 }) },
    "logscale") -- 8 times
end

function TestFigure.test_intervals_of_several_curves_stand_side_by_side_and_are_named()
  local function with(label)
    return { label = label, points = { { x = 1, y = 2, low = 1, high = 3 }, { x = 2, y = 2 } } }
  end
  local script = lines { with "a", with "b" }
  lu.assertStrContains(script, "$errors1 << END_OF_DATA\n0.996 2 1 3\n")
  lu.assertStrContains(script, "$errors2 << END_OF_DATA\n1.004 2 1 3\n")
  lu.assertStrContains(script, [[set ylabel "y, 95 \045 interval"]])
  lu.assertStrContains(lines { with "a" }, "$errors1 << END_OF_DATA\n1 2 1 3\n")
end

function TestFigure.test_numbers_of_bars_stand_beside_the_axis_and_keys_take_the_columns_that_fit()
  local script = figure.script { { kind = "bars", name = "b", title = "t", xlabel = "x", mark = 1,
    series = { "a set", "another set", ("n"):rep(60) }, rows = { { label = "ar", { y = 1, text = "1.00x" } },
      { label = "linear", { y = 2, low = 1.5, high = 2.5, text = "2.00x" } } } } }
  lu.assertStrContains(script, "set xrange [0:2.6]")
  lu.assertStrContains(script, ' 2.6 "2.00x"')
  lu.assertStrContains(script, "maxcols 1 ")
  lu.assertStrContains(lines { curve("a", { 1, 2 }), curve("b", { 1, 3 }) }, "maxcols 12 ")
end

function TestFigure.test_a_cell_of_a_map_that_was_not_run_stays_empty()
  local script = figure.script { { kind = "heat", name = "h", title = "t", xlabel = "D", ylabel = "B", zlabel = "z",
    xs = { 3, 4 }, ys = { 2, 0.5 }, cells = { { 1.0, nil }, { 1.5, 2.0 } } } }
  lu.assertStrContains(script, "1 1 0.5 1.5 0.5 1.5 1 \"1.00\"")
  lu.assertStrContains(script, "set cbrange [0:2]")
  lu.assertNotStrContains(script, "2 1 1.5 2.5 0.5 1.5")
  lu.assertStrContains(script, 'set ytics ("2" 1, "0.5" 2)')
end

function TestFigure.test_a_label_keeps_its_colour_and_plain_decoding_is_grey()
  local function bars(name, labels)
    local f = { kind = "bars", name = name, title = "t", xlabel = "x", series = { "s" }, rows = {} }
    for i, label in ipairs(labels) do
      f.rows[i] = { label = label, plain = label == "ar", { y = 1, text = "1" } }
    end
    return f
  end
  local one, two = curve("b", { 1, 2 }), curve("c", { 2, 3 })
  local script = figure.script { bars("first", { "a", "b", "ar" }), bars("second", { "ar", "b", "a" }),
    { kind = "lines", name = "third", title = "t", xlabel = "x", ylabel = "y", series = { two, one } } }
  local rows = {}
  for block in script:gmatch "$bars1 << END_OF_DATA\n(.-)END_OF_DATA" do
    for of in block:gmatch "0x(%x+)" do rows[#rows + 1] = of end
  end
  local a, b = palette.SERIES[1]:sub(2), palette.SERIES[2]:sub(2)
  local ar = palette.PLAIN:sub(2)
  lu.assertEquals(rows, { a, b, ar, ar, b, a })
  lu.assertStrContains(script, ("linecolor rgb '#%s' title \"b\""):format(b))
  lu.assertStrContains(script, ("linecolor rgb '%s' title \"c\""):format(palette.SERIES[3]))
end

-- The colours of the bars of each set, and those of its place in the key.
local function colours_of_sets(script)
  local bars, keys = {}, {}
  for block in script:gmatch "$bars%d << END_OF_DATA\n(.-)END_OF_DATA" do
    local list = {}
    for of in block:gmatch "0x(%x+)" do list[#list + 1] = "#" .. of end
    bars[#bars + 1] = list
  end
  for of in script:match "^(.-)set terminal png":gmatch "boxes fillcolor rgb '(#%x+)'" do keys[#keys + 1] = of end
  return bars, keys
end

function TestFigure.test_an_arm_has_its_colour_in_neighbouring_figures_and_sets_are_shades_of_it()
  local function row(label, n)
    local r = { label = label, plain = label == "ar" }
    for k = 1, n do r[k] = { y = k, text = "1" } end
    return r
  end
  local first, second = palette.SERIES[1], palette.SERIES[2]
  for n = 2, 6 do
    local sets = {}
    for k = 1, n do sets[k] = "set " .. k end
    local script = figure.script { { kind = "bars", name = "b", title = "t", xlabel = "x", series = sets,
      rows = { row("linear", n), row("rate", n), row("ar", n) } },
      { kind = "lines", name = "l", title = "t", xlabel = "x", ylabel = "y",
        series = { curve("rate", { 1, 2 }), curve("linear", { 2, 3 }) } } }
    local bars, keys = colours_of_sets(script)
    lu.assertEquals(bars[1], { first, second, palette.PLAIN })
    lu.assertStrContains(script, ("linecolor rgb '%s' title \"linear\""):format(first))
    lu.assertStrContains(script, ("linecolor rgb '%s' title \"rate\""):format(second))
    lu.assertEquals(#keys, n)
    local known = {}
    for k = 1, n do
      lu.assertEquals(keys[k], bars[k][3]) -- plain decoding's shades are the key's
      for i, of in ipairs(bars[k]) do
        lu.assertEquals("#" .. of:sub(-6), bars[1][i]) -- the arm's own colour, more or less of it
        lu.assertNil(known[of])
        known[of] = true
      end
    end
  end
end

function TestFigure.test_what_is_said_of_one_policy_has_its_colour_whatever_the_label_is()
  local best, mean, own = curve("best", { 1, 2 }), curve("mean", { 1, 1.5 }), curve("linear", { 3, 4 })
  best.of, mean.of, mean.faint = "linear", "linear", true
  local function figure_of(name, series)
    return { kind = "lines", name = name, title = "t", xlabel = "x", ylabel = "y", series = series }
  end
  local script = figure.script { figure_of("a", { best, mean }), figure_of("b", { own }) }
  local function colour(label) return script:match("linecolor rgb '(#%x+)' title \"" .. label .. '"') end
  lu.assertEquals(colour "best", palette.SERIES[1])
  lu.assertEquals(colour "linear", palette.SERIES[1])
  lu.assertStrMatches(colour "mean", "#%x%x" .. palette.SERIES[1]:sub(2))
end

function TestFigure.test_of_more_labels_than_colours_the_shape_tells_two_apart()
  local series, known = {}, {}
  for i = 1, 2 * #palette.SERIES do series[i] = curve("s" .. i, { i, i + 1 }) end
  local script = lines(series):match "f.svg(.*)set terminal png"
  for point, of in script:gmatch "pointtype (%d+) .-linecolor rgb '(#%x+)'" do
    lu.assertNil(known[point .. of])
    known[point .. of] = true
  end
end

function TestFigure.test_parts_of_the_time_have_their_own_colours()
  local script = figure.script { { kind = "stack", name = "s", title = "t", xlabel = "x",
    series = { "verify", "draft" }, rows = { { label = "ar", 1, 2 } } } }
  for _, part in ipairs { "verify", "draft" } do
    lu.assertStrContains(script, ("rgb '%s' title \"%s\""):format(palette.PHASES[part], part))
  end
end

function TestFigure.test_a_narrow_layout_breaks_titles_has_fewer_marks_and_labels_above_bars()
  local title = "Speedup of everything that was tried, by the number of tokens generated"
  local rows = { { label = "ar", { y = 1, text = "1.00x" } }, { label = "linear", { y = 2, text = "2.00x" } } }
  local all = { { kind = "bars", name = "b", title = title, xlabel = "x", mark = 1, series = { "s" }, rows = rows },
    { kind = "lines", name = "l", title = title, xlabel = "x", ylabel = "y",
      series = { curve("a", { 1, 2, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8 }, 1000) } } }
  local narrow, wide = figure.script(all, true), figure.script(all)
  lu.assertStrContains(narrow, [[title "Speedup of everything that was tried, by the\012number of tokens generated"]])
  lu.assertStrContains(wide, ('title "%s"'):format(title))
  lu.assertStrContains(narrow, "unset ytics")
  lu.assertStrContains(narrow, '$names << END_OF_DATA\n0 0.5 "ar"\n0 1.5 "linear"\n')
  local function marks(script) return select(2, script:match("set xtics (%b())"):gsub("%d+", "")) end
  lu.assertEquals(marks(wide), 12)
  lu.assertTrue(marks(narrow) < 9)
  lu.assertStrContains(narrow, 'set output "./b.narrow.svg"')
  lu.assertNotStrContains(narrow, ".png")
end

TestReport = {}

function TestReport.test_it_names_each_model_before_what_is_known_of_it()
  local given = file({ run { arm = "ar", speed = 100 } }, { repeats = 2 })
  for name, value in pairs { draft = "d", target_dtype = "f16", draft_dtype = "q8", draft_head = "medusa",
                             cache_dtype = "f32", commit = "c" } do
    given.head[name] = value
  end
  local document = report.document({ given }, { "m" })
  local names = {}
  for i, row in ipairs(document[#document].table.rows) do names[i] = row[1] end
  lu.assertEquals(names, { "machine", "backend", "threads", "target", "target_dtype", "draft", "draft_dtype",
                           "draft_head", "cache_dtype", "version", "commit", "repeats" })
end

function TestReport.test_it_begins_with_what_was_found_and_ends_with_what_was_run()
  local runs = { run { arm = "ar", speed = 100 }, run { arm = "slow", speed = 120 }, run { arm = "fast", speed = 300 } }
  local document = report.document({ file(runs) }, { "m" })
  lu.assertEquals(document[1].heading, "What was found: test")
  local found = document[3].table
  lu.assertEquals(found.columns, { "", "speedup (prompt included)", "tokens/s (prompt included)", "tokens/iteration" })
  lu.assertEquals({ found.rows[1][1], found.rows[2][1], found.rows[3][1] }, { "fast", "slow", "ar" })
  lu.assertEquals(document[4].text, "On m, cpu, 1 threads; target t.")
  lu.assertTrue(document[#document - 1].folded and document[#document].table.facts)
  local html = page.html(document, function() end)
  lu.assertStrContains(html, "<summary>What was run: test</summary>")
  lu.assertStrContains(html, "</table>\n</div>\n</details>\n</body>")
  for _, name in ipairs { "m-speedup", "m-speed" } do -- the longest bar on top
    local labels = {}
    for i, row in ipairs(figures_of(document)[name].rows) do labels[i] = row.label end
    lu.assertEquals(labels, { "fast", "slow", "ar" })
  end
end

function TestReport.test_of_many_arms_the_table_of_what_was_found_has_8()
  local function rows_of(n)
    local runs = { run { arm = "ar", speed = 100 } }
    for i = 2, n do runs[i] = run { arm = "linear K=" .. i, params = { K = i }, speed = 100 + i } end
    return report.document({ file(runs) }, { "m" })[3].table.rows
  end
  lu.assertEquals({ #rows_of(7), #rows_of(8), #rows_of(9) }, { 7, 8, 8 })
  lu.assertEquals({ rows_of(9)[1][1], rows_of(9)[8][1] }, { "linear K=9", "ar" })
end

function TestReport.test_sets_without_scales_are_bars()
  local runs = { run { arm = "ar", speed = 1 }, run { arm = "linear", speed = 2 } }
  local document = report.document({ file(runs) }, { "m" })
  lu.assertEquals(names_of(document, "figure"), { "m-speedup", "m-speed" })
  lu.assertEquals(names_of(document, "text")[1],
    "On s/1 there are too few texts for an interval: linear 2.00x and ar 1.00x.")
end

-- A headline over texts on which plain decoding has speed 100, linear and dynatree those given.
local function headline(linear, dynatree)
  local runs = {}
  for i in ipairs(linear) do
    for arm, speeds in pairs { ar = {}, linear = linear, dynatree = dynatree } do
      runs[#runs + 1] = run { arm = arm, speed = speeds[i] or 100, prompt = "s/" .. i }
    end
  end
  local document = report.document({ file(runs) }, { "m" })
  return names_of(document, "text")[1], page.markdown(document, true)
end

function TestReport.test_a_headline_is_made_of_what_is_told_apart_on_the_same_texts()
  lu.assertStrContains(headline({ 200, 300, 400, 250 }, { 180, 270, 360, 225 }),
    "Fastest on s: linear 2.88x [")
  local _, text = headline({ 200, 300, 400, 250 }, { 180, 270, 360, 225 })
  lu.assertStrContains(text, "1.11x [1.11, 1.11] as fast as the next on the same texts, dynatree.")
  lu.assertStrContains(text, "## Pairs")
end

function TestReport.test_no_headline_is_made_of_an_interval_that_holds_1()
  local line, text = headline({ 200, 300, 400, 250 }, { 240, 230, 390, 260 })
  lu.assertStrContains(line, "No arm is reliably the fastest on s: linear ")
  lu.assertStrMatches(text, ".*| linear .*1.0%dx %[0.%d%d, 1.%d%d%] ~.*")
  line = headline({ 80, 130, 160, 90 }, { 70, 110, 140, 80 }) -- differs from dynatree, but not from plain decoding
  lu.assertStrContains(line, "No arm is reliably the fastest on s: linear ")
end

function TestReport.test_lengths_are_lines_and_settings_lines_and_maps()
  local runs = {}
  for _, tokens in ipairs { 100, 200 } do
    runs[#runs + 1] = run { arm = "ar", tokens = tokens, speed = 100 }
    for D = 2, 3 do
      for B = 1, 2 do
        runs[#runs + 1] = run { arm = ("fixed_tree B=%d D=%d"):format(B, D), policy = "fixed_tree", tokens = tokens,
                                params = { B = B, D = D }, speed = 100 * D + B }
      end
    end
  end
  local document = report.document({ file(runs) }, { "m" })
  lu.assertEquals(names_of(document, "figure"), { "m-tokens-s-speedup", "m-tokens-s-speed", "m-settings-1-B",
    "m-settings-1-D", "m-settings-1-B-D" })
  local map = figures_of(document)["m-settings-1-B-D"]
  lu.assertEquals(map.cells, { { 2.01, 2.02 }, { 3.01, 3.02 } })
  lu.assertEquals(map.title, "fixed_tree: speedup by B and D")
end

function TestReport.test_what_is_not_drawn_is_said()
  local runs, names = { run { arm = "ar", speed = 100 } }, { "B", "C", "D", "E", "F" }
  for i = 0, 31 do
    local settings = {}
    for k, name in ipairs(names) do settings[name] = i >> (k - 1) & 1 end
    runs[#runs + 1] = run { arm = "t" .. i, policy = "fixed_tree", params = settings, speed = 100 + i }
  end
  local document = report.document({ file(runs) }, { "m" })
  local text = page.markdown(document, true)
  lu.assertStrContains(text, "The tables show the 24 fastest of 33 arms.")
  lu.assertStrContains(text, "Figures of arms show 4 of 33: plain decoding and the fastest others, at most 3 of a "
    .. "kind. Left out: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 17 more, which are in report.csv.")
  lu.assertStrContains(text, "fixed_tree: 6 of 10 maps of two settings are drawn.")
  lu.assertStrContains(text, "![fixed_tree: speedup by B and C, best of the other settings](m-settings-1-B-C.svg)")
end

function TestReport.test_studies_are_drawn_one_by_one()
  local runs = { run { arm = "ar", speed = 1 } }
  for _, study in ipairs { "depth", "breadth" } do
    runs[#runs + 1] = run { arm = study, policy = "dynatree", axes = { study = study }, speed = 2 }
  end
  local document = report.document({ file(runs) }, { "m" })
  lu.assertEquals(names_of(document, "figure"), { "m-1-speedup", "m-1-speed", "m-2-speedup", "m-2-speed" })
end

function TestReport.test_figures_have_names_of_files_each_its_own_whatever_sets_and_settings_are_called()
  local runs, long = {}, ("n"):rep(300)
  for _, set in ipairs { "a.b", "ab" } do
    for i, tokens in ipairs { 10, 20 } do
      runs[#runs + 1] = run { arm = "ar", speed = 1, set = set, tokens = tokens }
      for value = 1, 3 do
        runs[#runs + 1] = run { arm = "linear " .. value, speed = value + i, set = set, tokens = tokens,
                                params = { ["../K/x"] = value, [long] = value } }
      end
    end
  end
  local known = {}
  for _, name in ipairs(names_of(report.document({ file(runs) }, { "m" }), "figure")) do
    lu.assertStrMatches(name, "[%w_-]+")
    lu.assertTrue(#name <= 110)
    lu.assertNil(known[name], name)
    known[name] = true
  end
  lu.assertTrue(known["m-tokens-ab-speed"] and known["m-tokens-ab-speed-2"] and known["m-settings-1----K-x"])
end

function TestReport.test_a_setting_that_is_a_number_in_some_arms_only_is_drawn_for_these()
  local runs = { run { arm = "ar", speed = 1 } }
  for i, value in ipairs { 1, 2, 3, "many" } do
    runs[#runs + 1] = run { arm = "linear " .. i, params = { K = value }, speed = i }
  end
  runs[#runs + 1] = run { arm = "linear", speed = 2 }
  local document = report.document({ file(runs) }, { "m" })
  lu.assertStrContains(figure.script { figures_of(document)["m-settings-1-K"] }, 'set xlabel "K"')
end

function TestReport.test_traced_runs_alone_have_no_tables()
  local traced = run { arm = "traced", speed = 9 }
  traced.probability = { { sum = 0.25, n = 10, accepted = 5 } }
  lu.assertEquals(names_of(report.document({ file { traced } }, { "m" }), "heading"),
                  { "What was found: test", "Probability", "What was run: test" })
end

function TestReport.test_control_characters_break_neither_a_table_nor_a_figure()
  local runs = { run { arm = "ar", speed = 1 }, run { arm = "a\nb\0c|d", speed = 2 } }
  local document = report.document({ file(runs) }, { "m" })
  lu.assertStrContains(page.markdown(document, true), "| a b c\\|d |")
  for _, item in ipairs(document) do
    if item.figure then lu.assertStrContains(figure.script { item.figure }, [[a b c\174d]]) end
  end
end

function TestReport.test_speeds_say_that_the_prompt_is_in_them()
  local runs = { run { arm = "ar", speed = 1 }, run { arm = "linear", speed = 2 } }
  local document = report.document({ file(runs) }, { "m" })
  local headings = 0
  for _, item in ipairs(document) do
    for _, name in ipairs(item.table and item.table.columns or {}) do
      if name:match "^tokens/s" or name:match "^speedup" then
        headings = headings + 1
        lu.assertStrContains(name, " (prompt included)")
      end
    end
    if item.figure and item.figure.name:match "%-speed" then
      lu.assertStrContains(item.figure.xlabel, "prompt included")
    end
  end
  lu.assertEquals(headings, 4) -- what was found, and the speeds
end

function TestReport.test_without_plain_decoding_there_are_speeds_but_no_speedups()
  local document = report.document({ file { run { arm = "linear", speed = 2 } } }, { "m" })
  local text = page.markdown(document, true)
  lu.assertStrContains(text, "Plain decoding was not run")
  lu.assertStrContains(text, "tokens/s")
  lu.assertNotStrContains(text, "| speedup")
end

function TestReport.test_a_reference_is_a_column_of_its_own()
  local runs = { run { arm = "ar", speed = 1 }, run { arm = "linear", speed = 2 }, run { arm = "dynatree", speed = 3 } }
  local text = page.markdown(report.document({ file(runs, { reference = "linear" }) }, { "m" }), true)
  lu.assertStrContains(text, "against linear")
  lu.assertStrContains(text, "1.50x")
end

function TestReport.test_the_sample_gives_every_section()
  local document = report.document({ assert(record.read(SAMPLE)) }, { "sample" })
  lu.assertEquals(names_of(document, "heading"),
    { "What was found: sample", "Speed", "Pairs", "Verification", "Time", "What was run: sample" })
  lu.assertEquals(names_of(document, "figure"), { "sample-speedup", "sample-speed", "sample-depth", "sample-time" })
  local html = page.html(document, function(f) return "<?xml?>\n<svg><!--" .. f.name .. "--></svg>" end)
  lu.assertStrContains(html, "<svg><!--sample-time--></svg></figure>")
  lu.assertNotStrContains(html, "src=")
  lu.assertNotStrContains(html, "<?xml")
end

function TestReport.test_memory_is_compared_where_every_run_had_its_own_process()
  local function with_memory(arm, bytes)
    local made = run { arm = arm, speed = 1 }
    made.stats.peak_memory_bytes = { host = bytes, weights = bytes // 2, caches = 1000000 }
    return made
  end
  local runs = { with_memory("ar", 20000000), with_memory("linear", 21000000) }
  lu.assertNotStrContains(page.markdown(report.document({ file(runs) }, { "m" }), true), "Memory")
  local text = page.markdown(report.document({ file(runs, { alone = true }) }, { "m" }), true)
  lu.assertStrContains(text, "| linear |        10.5 |        1.0 |        21.0 |              +5.0 % |")
end

function TestReport.test_traced_runs_give_the_accepted_length_by_probability_and_no_speed()
  local traced = run { arm = "traced", speed = 9 }
  traced.probability = { { sum = 0.25, n = 10, accepted = 5 }, { sum = 0.75, n = 8, accepted = 8 },
                         { sum = 1.25, n = 1, accepted = 3 } }
  local document = report.document({ file { run { arm = "ar", speed = 1 }, traced } }, { "m" })
  lu.assertEquals(figures_of(document)["m-probability"].series,
                  { { label = "traced", points = { { x = 0.25, y = 0.5 }, { x = 0.75, y = 1.0 } } } })
  lu.assertNotStrContains(page.markdown(document, false), "traced")
end

function TestReport.test_what_policies_say_of_their_own_is_summed_up()
  local function noted(prompt, accepted, mean)
    local made = run { arm = "linear", speed = 10, prompt = prompt }
    made.stats.tags = { copy = { verified = 9, decided = 4, expected = 1.5, accepted = accepted } }
    made.stats.log = { gain = { n = 2, mean = mean } }
    return made
  end
  local runs = { run { arm = "ar", speed = 5 }, noted("s/1", 1, 3), noted("s/2", 4, 5) }
  local document = report.document({ file(runs) }, { "t" })
  local rows = {}
  for _, item in ipairs(document) do
    if item.table and (item.table.columns[2] == "tag" or item.table.columns[2] == "number") then
      rows[#rows + 1] = item.table.rows
    end
  end
  lu.assertEquals(rows, { { { "linear", "copy", "18", "8", "37.5 %", "62.5 %" } }, { { "linear", "gain", "4", "4" } } })
  document = report.document({ file { run { arm = "ar", speed = 5 } } }, { "t" })
  lu.assertNotTableContains(names_of(document, "heading"), "Policies' notes")
end

os.exit(lu.LuaUnit.run())
