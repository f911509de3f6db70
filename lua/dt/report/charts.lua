-- The figures of a report: makes data for dt.draw.figure from a summary. Each function takes a table with the fields
-- that its caller knows (name, title, labels), fills in the other fields and returns it, or nil if there is nothing to
-- draw.
local summary = require "dt.report.summary"

local charts = {}

-- An arm's value of a setting, if that is a number; otherwise nil.
local function numeric(arm, setting)
  local value = arm.settings[setting.name]
  return math.type(value) and value or nil
end

local function mean_of(cells, n)
  local sum, count = 0, 0
  for k = 1, n do
    if cells[k] then sum, count = sum + cells[k].y, count + 1 end
  end
  return count > 0 and sum / count or 0
end

-- Bars of a metric, one for each group of runs; the longest bar is on top.
function charts.bars(s, arms, metric, options)
  local groups = s:groups()
  options.kind, options.series, options.rows = "bars", {}, {}
  for k, group in ipairs(groups) do options.series[k] = group.label end
  for i, arm in ipairs(arms) do
    local row = { label = arm.label, plain = arm.plain }
    for k, group in ipairs(groups) do
      local d = s:describe(metric, summary.with(group.where, { arm = arm.label }))
      if d and metric == "speed" then -- show the standard deviation, not the interval of the mean
        row[k] = { y = d.mean, low = d.deviation and d.mean - d.deviation, high = d.deviation and d.mean + d.deviation }
      elseif d then
        row[k] = { y = d.mean, low = d.low, high = d.high }
      end
      if row[k] then row[k].text = options.form:format(d.mean) end
    end
    options.rows[i] = row
  end
  local n = #options.series
  table.sort(options.rows, function(a, b)
    local x, y = mean_of(a, n), mean_of(b, n)
    return x > y or x == y and a.label < b.label
  end)
  return options
end

function charts.scale_lines(s, arms, where, scale, metric, options)
  options.kind, options.series = "lines", {}
  for _, arm in ipairs(arms) do
    local points = {}
    for _, value in ipairs(scale.values) do
      local d = s:describe(metric, summary.with(where, { arm = arm.label, [scale.name] = value }))
      if d then points[#points + 1] = { x = value, y = d.mean, low = d.low, high = d.high } end
    end
    if #points > 0 then table.insert(options.series, { label = arm.label, plain = arm.plain, points = points }) end
  end
  return #options.series > 0 and options or nil
end

local RARE = 0.002 -- depths that a smaller share of the iterations accepts are not drawn

-- The share of iterations that accept a token at each depth.
function charts.depth_lines(s, arms, options)
  options.kind, options.series = "lines", {}
  for _, arm in ipairs(arms) do
    local accepted, iterations = {}, 0
    for _, run in ipairs(s:select { arm = arm.label }) do
      iterations = iterations + run.stats.iterations
      for i, at in ipairs(run.stats.accepted_by_depth or {}) do accepted[i] = (accepted[i] or 0) + at.accepted end
    end
    local points = {}
    for i, n in ipairs(accepted) do
      if n >= RARE * iterations then points[#points + 1] = { x = i, y = 100 * n / iterations } end
    end
    if #points > 0 then table.insert(options.series, { label = arm.label, plain = arm.plain, points = points }) end
  end
  options.xlabel = ("depth in the tree, as far as %g %% of iterations accept"):format(100 * RARE)
  return #options.series > 0 and options or nil
end

-- The parts of the time of each arm; the least time is on top.
function charts.time_stack(s, arms, options)
  options.kind, options.series, options.rows = "stack", summary.PARTS, {}
  local sum = {}
  for i, arm in ipairs(arms) do
    local row = { label = arm.label }
    sum[row] = 0
    for k, part in ipairs(summary.PARTS) do
      local d = s:describe(part, { arm = arm.label })
      row[k] = d and d.mean or 0
      sum[row] = sum[row] + row[k]
    end
    options.rows[i] = row
  end
  table.sort(options.rows, function(a, b) return sum[a] < sum[b] or sum[a] == sum[b] and a.label < b.label end)
  return options
end

-- Speedup (merit[arm]) by one setting: for each value the best of the other settings, and their mean.
function charts.setting_lines(merit, arms, setting, options)
  local of = summary.kind(arms[1])
  local best = { label = "best of the other settings", of = of, points = {} }
  local mean = { label = "their mean", of = of, faint = true, points = {} }
  for i, group in ipairs(summary.grouped(arms, function(arm) return numeric(arm, setting) end)) do
    local most, sum = merit[group[1]], 0
    for _, arm in ipairs(group) do
      if merit[arm].mean > most.mean then most = merit[arm] end
      sum = sum + merit[arm].mean
    end
    best.points[i] = { x = group.key, y = most.mean, low = most.low, high = most.high }
    mean.points[i] = { x = group.key, y = sum / #group }
  end
  for _, series in ipairs { best, mean } do table.sort(series.points, function(a, b) return a.x < b.x end) end
  options.kind, options.xlabel, options.series = "lines", setting.name, { best, mean }
  if #arms == #setting.values then options.series = { { label = "speedup", of = of, points = best.points } } end
  return options
end

-- A metric by a setting, if arms differ in that setting only.
function charts.arm_lines(s, arms, setting, metric, options)
  local points = {}
  for _, arm in ipairs(arms) do
    local x, d = numeric(arm, setting), s:describe(metric, { arm = arm.label })
    if x and d then points[#points + 1] = { x = x, y = d.mean, low = d.low, high = d.high } end
  end
  table.sort(points, function(a, b) return a.x < b.x end)
  options.kind, options.xlabel = "lines", setting.name
  options.series = { { label = summary.kind(arms[1]), points = points } }
  return #points > 0 and options or nil
end

local FEWEST = 5 -- iterations needed to show a mean

-- Mean accepted length by the summed probability of the verified nodes, over the traced runs of each arm.
function charts.probability(s, options)
  options.kind, options.series = "lines", {}
  for _, runs in ipairs(summary.grouped(s.traced, function(run) return run.arm end)) do
    local of, points = {}, {}
    for _, run in ipairs(runs) do
      for _, bin in ipairs(run.probability) do
        local sum = of[bin.sum] or { n = 0, accepted = 0 }
        of[bin.sum] = { n = sum.n + bin.n, accepted = sum.accepted + bin.accepted }
      end
    end
    for x, sum in pairs(of) do
      if sum.n >= FEWEST then points[#points + 1] = { x = x, y = sum.accepted / sum.n } end
    end
    table.sort(points, function(a, b) return a.x < b.x end)
    if #points > 0 then table.insert(options.series, { label = runs.key, points = points }) end
  end
  return #options.series > 0 and options or nil
end

-- The speedup at each pair of values of two settings. If other settings vary, too, it is the best of them, which the
-- title says. nil if too few pairs were run for a map.
function charts.heat_map(merit, arms, x, y, options)
  options.kind, options.xlabel, options.ylabel, options.zlabel = "heat", x.name, y.name, "speedup"
  options.xs, options.ys, options.cells = x.values, y.values, {}
  local filled, several = 0, false
  for iy, y_value in ipairs(y.values) do
    local row = {}
    options.cells[iy] = row
    for ix, x_value in ipairs(x.values) do
      for _, arm in ipairs(arms) do
        if arm.settings[x.name] == x_value and arm.settings[y.name] == y_value then
          filled, several = filled + (row[ix] and 0 or 1), several or row[ix] ~= nil
          row[ix] = math.max(row[ix] or 0, merit[arm].mean)
        end
      end
    end
  end
  if several then options.title = options.title .. ", best of the other settings" end
  return filled > math.max(#x.values, #y.values) and options or nil -- more than a diagonal
end

return charts
