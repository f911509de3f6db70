-- The document of a report. Its tables and figures depend on which sets, scales and settings vary.
local answers = require "dt.answers"
local charts = require "dt.report.charts"
local columns = require "dt.report.columns"
local core = require "dt.core"
local place = require "dt.record.place"
local record = require "dt.record"
local summary = require "dt.report.summary"

local plain, ratio, INCLUDED = columns.plain, columns.ratio, columns.INCLUDED

local MOST_ROWS = 24  -- rows of a table; if there are more arms, the fastest are shown
local MOST_BARS = 12  -- bars of a figure; if there are more arms, some of the fastest of each kind are shown
local EACH_KIND = 3
local MOST_HEAT_MAPS = 6
local MOST_PAIRS = 6  -- arms of a table of pairs
local MOST_NAMED = 12 -- maximum number of left-out arms that a note names
local MOST_FOUND = 8  -- rows of the first table of a report
-- The labels of the axes.
local SCALES = { tokens = "tokens generated", chars = "characters of prompt", batch = "sequences at once",
                 context = "tokens of prompt" }

local function base(path) return path:match "[^/]*$" end

-- A line about the machine and the models.
local function place_of(head)
  return ("On %s, %s, %d threads; target %s%s."):format(head.machine, head.backend, head.threads, base(head.target),
    head.draft and ", draft " .. base(head.draft) or "")
end

local function facts(head)
  local t = { facts = true, columns = { "", "" }, rows = {} }
  local order = { "began", "machine", "backend", "threads" }
  for _, name in ipairs(core.facts) do
    local model = name:match "^(.*)_dtype$" -- the model itself comes before its type
    if head[model] ~= nil and order[#order] ~= model then order[#order + 1] = model end
    order[#order + 1] = name
  end
  for _, name in ipairs { "version", "commit", "build", "target_hash", "draft_hash", "shard" } do
    order[#order + 1] = name
  end
  for _, name in ipairs(order) do
    if head[name] ~= nil then t.rows[#t.rows + 1] = { name, tostring(head[name]) } end
  end
  local names = {}
  for name in pairs(head.protocol) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = head.protocol[name]
    if type(value) == "table" then
      local list = {}
      for i, item in ipairs(value) do list[i] = tostring(item) end
      value = table.concat(list, ", ")
    end
    t.rows[#t.rows + 1] = { name, tostring(value) }
  end
  return t
end

local function add(document, kind, item)
  if item then document[#document + 1] = { [kind] = item } end
end

-- The groups of runs that get tables of their own: one for each way of generating, or for each set if there are at
-- most two, or one for all. name is for names of files.
local function views_of(s)
  if #s.ways < 2 and #s.sets > 2 then return { { label = "All sets", name = "All sets", where = {} } } end
  return s:groups()
end

-- Whether a ratio reliably differs from 1: its interval does not include 1.
local function is_told(d) return d and d.low and (d.low > 1 or d.high < 1) end

-- A sentence about the fastest arm, if it is reliably faster than the next on the same texts and than plain decoding;
-- otherwise about the arms that do not differ.
local function headline(s, view)
  local ranked = s:ranked(s.arms, view.where)
  local best, second = ranked[1], ranked[2]
  local function speedup(arm) return s:describe("speedup", summary.with(view.where, { arm = arm.label })) end
  local lead = second and s:describe("against", summary.with(view.where, { arm = best.label }), second.label)
  if not lead then return nil end
  local both = ("%s %s and %s %s"):format(best.label, ratio(speedup(best)), second.label, ratio(speedup(second)))
  if not lead.low then return ("On %s there are too few texts for an interval: %s."):format(view.label, both) end
  if not is_told(lead) or not best.plain and not is_told(speedup(best)) then
    return ("No arm is reliably the fastest on %s: %s; the ratio on the same texts is %s."):format(view.label, both,
      ratio(lead))
  end
  return ("Fastest on %s: %s %s, %s as fast as the next on the same texts, %s."):format(view.label, best.label,
    ratio(speedup(best)), ratio(lead), second.label)
end

-- A table of the fastest arms and plain decoding, the fastest first: the speedup in each view, and what it comes from.
local function found_table(s, views)
  local arms = s:ranked(s:few(s.arms, MOST_FOUND))
  local t = columns.rows(arms)
  for _, view in ipairs(views) do
    local heading = "speedup" .. INCLUDED .. (#views > 1 and ", " .. view.label or "")
    columns.add(t, s, arms, view.where, { heading, "speedup", ratio })
  end
  for _, column in ipairs {
    { "tokens/s" .. INCLUDED, "speed", plain "%.1f" },
    { "tokens/iteration", "tokens_per_iteration", plain "%.2f" },
    { "acceptance rate", "acceptance_rate", plain("%.1f %%", 100) },
  } do
    columns.add(t, s, arms, {}, column)
  end
  return t
end

-- A table of the same arms with a column of each view next to each other, to see what reasoning changes.
local function by_reasoning(s, views)
  local arms = s:ranked(s:few(s.arms, MOST_FOUND))
  local t = columns.rows(arms)
  for _, column in ipairs {
    { "speedup", "decoding", ratio }, { "tokens/iteration", "tokens_per_iteration", plain "%.2f" },
    { "acceptance rate", "acceptance_rate", plain("%.1f %%", 100) },
  } do
    for _, view in ipairs(views) do
      columns.add(t, s, arms, view.where, { ("%s, %s"):format(column[1], view.label), column[2], column[3] })
    end
  end
  return t
end

local function findings(document, s, views)
  if s.arms[1].plain then
    for _, group in ipairs(s:groups()) do add(document, "text", headline(s, group)) end
  else
    add(document, "text", "Plain decoding was not run, so there are no speedups.")
  end
  add(document, "table", found_table(s, views))
  if s.head.protocol.reasoning then
    add(document, "text", "With reasoning and without, after the prompt:")
    add(document, "table", by_reasoning(s, views))
  end
end

-- A long prompt takes most of a run's time, so there is a table of the speedup after it.
local function by_context(document, s, view, rows, scale)
  for _, each in ipairs { { "speedup of decoding after the prompt", "decoding", ratio },
                          { "tokens per iteration", "tokens_per_iteration", plain "%.2f" } } do
    add(document, "text", ("%s, %s:"):format(view.label, each[1]))
    add(document, "table", columns.by_value(s, rows, view.where, scale.name, scale.values, each[2], each[3]))
  end
end

local function speed_tables(document, s, views, rows)
  local list, reference = { table.unpack(columns.SPEED) }, s.head.protocol.reference
  if reference then table.insert(list, 3, { "against " .. reference .. INCLUDED, "against", ratio }) end
  rows = table.move(s.bounds, 1, #s.bounds, #rows + 1, table.move(rows, 1, #rows, 1, {}))
  for _, view in ipairs(views) do
    add(document, "text", view.label .. ":")
    add(document, "table", columns.by_metric(s, rows, view.where, list, reference))
    for _, scale in ipairs(s.scales) do
      add(document, "text", ("%s, speedup by %s%s:"):format(view.label, SCALES[scale.name] or scale.name, INCLUDED))
      add(document, "table", columns.by_value(s, rows, view.where, scale.name, scale.values, "speedup", ratio))
      if scale.name == "context" then by_context(document, s, view, rows, scale) end
    end
  end
  if #s.sets <= 2 then return end
  for _, view in ipairs(#s.ways > 1 and views or { { where = {} } }) do
    add(document, "text", ("%sSpeedup by set%s:"):format(view.label and view.label .. ": " or "", INCLUDED))
    local t = columns.by_value(s, rows, view.where, "set", s.sets, "speedup", ratio)
    columns.add(t, s, rows, view.where, { "all", "speedup", ratio })
    columns.add(t, s, rows, view.where, { "tokens/iteration", "tokens_per_iteration", plain "%.2f" })
    for _, bound in ipairs(s.bounds) do
      columns.add(t, s, rows, view.where, { "share of " .. bound.label, "against", columns.share }, bound.label)
    end
    add(document, "table", t)
  end
end

local function speed_bars(document, s, arms, stem, of)
  add(document, "figure", charts.bars(s, arms, "speedup", { name = stem .. "-speedup", mark = 1, form = "%.2fx",
    title = "Speedup" .. of,
    xlabel = "speed relative to plain decoding, prompt included (95 % interval of the mean)" }))
  add(document, "figure", charts.bars(s, arms, "speed", { name = stem .. "-speed", form = "%.0f",
    title = "Throughput" .. of,
    xlabel = "tokens per second, prompt included (mean and standard deviation over prompts)" }))
end

local function speed_lines(document, s, arms, views, stem, of)
  local faster = table.move(arms, arms[1].plain and 2 or 1, #arms, 1, {})
  for _, scale in ipairs(s.scales) do
    for _, view in ipairs(views) do
      local name = ("%s-%s-%s"):format(stem, scale.name, view.name:gsub("%W", ""))
      local xlabel = SCALES[scale.name] or scale.name
      local title = ("%%s by %s, %s%s"):format(xlabel, view.label, of)
      add(document, "figure", charts.scale_lines(s, faster, view.where, scale, "speedup", { name = name .. "-speedup",
        title = title:format "Speedup", mark = 1, xlabel = xlabel,
        ylabel = "speedup over plain decoding, prompt included" }))
      add(document, "figure", charts.scale_lines(s, arms, view.where, scale, "speed", { name = name .. "-speed",
        title = title:format "Throughput", xlabel = xlabel, ylabel = "tokens per second, prompt included" }))
    end
  end
end

local function speed_section(document, s, stem, views, rows)
  add(document, "heading", "Speed")
  add(document, "text", "Mean and standard deviation over prompts. Speedup: mean ratio to plain decoding of the same "
    .. "prompt, with its 95 % bootstrap interval. TTFT: time to the first token. "
    .. "TPOT: time per further token.")
  for g, arms in ipairs(s:studies()) do
    local shown = s:few(arms, MOST_BARS, EACH_KIND)
    local own, of = arms.key and stem .. "-" .. g or stem, arms.key and ", " .. arms.key or ""
    if #s.scales == 0 then speed_bars(document, s, shown, own, of) end
    speed_lines(document, s, shown, views, own, of)
  end
  speed_tables(document, s, views, rows)
end

-- Adds tables of each arm's speed relative to each other arm's, over the texts that both have run.
local function pair_section(document, s, views)
  if #s.arms < 3 or not s.arms[1].plain then return end
  add(document, "heading", "Pairs")
  add(document, "text", ("How many times as fast each row is as each column: the mean ratio on the same texts, with "
    .. "its 95 %% interval; ~ where it contains 1, so that neither is reliably faster.%s"):format(#s.arms > MOST_PAIRS
    and (" Plain decoding and the fastest others, %d of %d."):format(MOST_PAIRS, #s.arms) or ""))
  for _, view in ipairs(views) do
    local arms, t = s:few(s.arms, MOST_PAIRS), { columns = { "" }, rows = {} }
    for i, arm in ipairs(arms) do
      t.columns[i + 1], t.rows[i] = arm.label, { arm.label }
      for k, other in ipairs(arms) do
        local d = k ~= i and s:describe("against", summary.with(view.where, { arm = arm.label }), other.label) or nil
        t.rows[i][k + 1] = ratio(d) .. (d and not is_told(d) and " ~" or "")
      end
    end
    add(document, "text", view.label .. ":")
    add(document, "table", t)
  end
end

local function verification_section(document, s, stem, views, rows, shown)
  add(document, "heading", "Verification")
  add(document, "figure", charts.depth_lines(s, shown, { name = stem .. "-depth", title = "Acceptance by depth",
    ylabel = "iterations that accept a token there, %" }))
  for _, view in ipairs(views) do
    add(document, "text", view.label .. ":")
    add(document, "table", columns.by_metric(s, rows, view.where, columns.VERIFICATION))
  end
end

local function own_section(document, s, rows)
  local tags, logged = columns.tags(s, rows), columns.logged(s, rows)
  if not (tags or logged) then return end
  add(document, "heading", "Policies' notes")
  add(document, "text", tags and "Nodes by the tag that the policy gave them. Decided: nodes whose parent was "
    .. "accepted; expected: how many of these should be accepted according to their probabilities.")
  add(document, "table", tags)
  add(document, "text", logged and "Numbers that the policy logged:")
  add(document, "table", logged)
end

local function time_section(document, s, stem, rows, shown)
  if not s:describe("verify", {}) then return end
  add(document, "heading", "Time")
  add(document, "figure", charts.time_stack(s, shown, { name = stem .. "-time", title = "Where the time goes",
    xlabel = "milliseconds per generated token" }))
  add(document, "text", "Milliseconds per generated token:")
  add(document, "table", columns.by_metric(s, rows, {}, columns.TIME))
end

-- Lines and maps of the settings' effects, for arms of one kind.
local function setting_figures(s, arms, stem)
  local figures, maps, merit = {}, {}, {}
  local settings, kind = summary.varying(arms), summary.kind(arms[1])
  for _, arm in ipairs(arms) do merit[arm] = s:merit(arm) end
  for _, x in ipairs(settings) do
    add(figures, "figure", charts.setting_lines(merit, arms, x, { name = stem .. "-" .. x.name, mark = 1,
      title = ("%s: speedup by %s"):format(kind, x.name),
      ylabel = "speedup over plain decoding, prompt included" }))
  end
  if #settings == 1 then
    add(figures, "figure", charts.arm_lines(s, arms, settings[1], "tokens_per_iteration", {
      name = ("%s-%s-tokens"):format(stem, settings[1].name), ylabel = "tokens per iteration",
      title = ("%s: tokens per iteration by %s"):format(kind, settings[1].name) }))
  end
  for i, x in ipairs(settings) do
    for k = i + 1, #settings do
      local y = settings[k]
      maps[#maps + 1] = charts.heat_map(merit, arms, x, y, { name = ("%s-%s-%s"):format(stem, x.name, y.name),
        title = ("%s: speedup by %s and %s"):format(kind, x.name, y.name) })
    end
  end
  for i = 1, math.min(#maps, MOST_HEAT_MAPS) do add(figures, "figure", maps[i]) end
  if #maps > MOST_HEAT_MAPS then
    add(figures, "text", ("%s: %d of %d maps of two settings are drawn."):format(kind, MOST_HEAT_MAPS, #maps))
  end
  return figures
end

local function settings_section(document, s, stem)
  local number, started = 0, false
  local function kind(arm) return not arm.plain and summary.kind(arm) or nil end
  for _, study in ipairs(s:studies()) do
    for _, arms in ipairs(summary.grouped(study, kind)) do
      number = number + 1
      local figures = #arms > 2 and setting_figures(s, arms, ("%s-settings-%d"):format(stem, number)) or {}
      if #figures > 0 and not started then
        add(document, "heading", "Settings")
        add(document, "text", "If several settings vary, the best of the other settings is the best of these runs: the "
          .. "more runs there were, the more it is due to chance.")
      end
      started = started or #figures > 0
      table.move(figures, 1, #figures, #document + 1, document)
    end
  end
end

-- Adds a text that names the arms that figures of arms leave out.
local function say_left_out(document, s, shown)
  local is_shown, left_out = {}, {}
  for _, arm in ipairs(shown) do is_shown[arm] = true end
  for _, arm in ipairs(s.arms) do
    if not is_shown[arm] then left_out[#left_out + 1] = arm.label end
  end
  if #left_out == 0 then return end
  local more = #left_out - MOST_NAMED
  add(document, "text", ("Figures of arms show %d of %d: plain decoding and the fastest others, at most %d of a kind. "
    .. "Left out: %s%s."):format(#shown, #s.arms, EACH_KIND, table.concat(left_out, ", ", 1, math.min(#left_out,
    MOST_NAMED)), more > 0 and (" and %d more, which are in report.csv"):format(more) or ""))
end

local function add_arms(document, file, s, stem)
  local views, rows, shown = views_of(s), s:few(s.arms, MOST_ROWS), s:few(s.arms, MOST_BARS, EACH_KIND)
  if #rows < #s.arms then
    add(document, "text", ("The tables show the %d fastest of %d arms."):format(#rows, #s.arms))
  end
  say_left_out(document, s, shown)
  speed_section(document, s, stem, views, rows)
  pair_section(document, s, views)
  verification_section(document, s, stem, views, rows, shown)
  own_section(document, s, rows)
  time_section(document, s, stem, rows, shown)
  settings_section(document, s, stem)
  if file.head.protocol.alone then
    add(document, "heading", "Memory")
    add(document, "text", "Peak memory. Every run had a process of its own, so its speeds are those with cold caches.")
    add(document, "table", columns.by_metric(s, rows, {}, columns.MEMORY))
  end
end

local function add_experiment(document, file, stem)
  local s, name = summary.new(file), file.head.experiment
  add(document, "heading", "What was found: " .. name)
  document[#document].link = name
  if #s.arms > 0 then findings(document, s, views_of(s)) end
  local published = answers.table(file)
  add(document, "text", published and "As the benchmark's scripts count: the mean speed of the questions, the mean "
    .. "number of tokens that a target pass commits, and the ratio of the mean speed to that of plain decoding.")
  add(document, "table", published)
  add(document, "text", place_of(file.head))
  add(document, "text", record.disturbance(file.runs))
  add(document, "text", place.summary(file.runs))
  for _, line in ipairs(record.failed(file.failures or {})) do add(document, "text", line .. ".") end
  add(document, "text", file.missing and "The experiment is incomplete: " .. file.missing .. ".")
  if #s.arms > 0 then add_arms(document, file, s, stem) end
  if #s.traced > 0 then
    add(document, "heading", "Probability")
    add(document, "figure", charts.probability(s, { name = stem .. "-probability",
      title = "Accepted length by summed probability", xlabel = "sum of the path probabilities of the verified nodes",
      ylabel = "accepted nodes per iteration" }))
  end
  add(document, "heading", "What was run: " .. name)
  document[#document].folded, document[#document].link = true, "What was run"
  add(document, "table", facts(file.head))
end

local MOST_NAME = 100 -- characters of a name, before a number that makes it unique

-- Gives each figure a valid and unique file name, whatever the names of sets and settings are.
local function name_figures(document)
  local taken = {}
  for _, item in ipairs(document) do
    if item.figure then
      local cut, number = item.figure.name:gsub("[^%w_-]", "-"):sub(1, MOST_NAME), 1
      local name = cut
      while taken[name] do
        number = number + 1
        name = ("%s-%d"):format(cut, number)
      end
      item.figure.name, taken[name] = name, true
    end
  end
end

-- Returns the document of a report. files: a list of experiments from record.read; their field missing is a text about
-- missing runs, if there are any (dt.merge). names: one name per file, with which its figures' names begin.
return function(files, names)
  local titles = {}
  for i, file in ipairs(files) do titles[i] = file.head.experiment end
  local document = { title = table.concat(titles, ", ") }
  for i, file in ipairs(files) do add_experiment(document, file, names[i]) end
  name_figures(document)
  return document
end
