-- The columns of a report's tables, each { heading, metric (dt.report.summary), format of its numbers }, and the tables
-- made of them.
local params = require "dt.policy.params"
local summary = require "dt.report.summary"

local columns = {}

local ABSENT = "-"

local function plain(form, scale)
  return function(d) return d and form:format(d.mean * (scale or 1)) or ABSENT end
end

local function spread(form)
  return function(d)
    if not d then return ABSENT end
    return d.deviation and (form .. " ± " .. form):format(d.mean, d.deviation) or form:format(d.mean)
  end
end

local function ratio(d)
  if not d then return ABSENT end
  return d.low and ("%.2fx [%.2f, %.2f]"):format(d.mean, d.low, d.high) or ("%.2fx"):format(d.mean)
end

-- A ratio as a percentage.
function columns.share(d)
  if not d then return ABSENT end
  return d.low and ("%.0f %% [%.0f, %.0f]"):format(100 * d.mean, 100 * d.low, 100 * d.high)
    or ("%.0f %%"):format(100 * d.mean)
end

local INCLUDED = " (prompt included)" -- in headings of speeds and ratios of speeds
columns.plain, columns.ratio, columns.INCLUDED = plain, ratio, INCLUDED

columns.SPEED = {
  { "tokens/s" .. INCLUDED, "speed", spread "%.1f" }, { "speedup" .. INCLUDED, "speedup", ratio },
  { "slowest text", "speedup", function(d) return d and ("%.2fx"):format(d.least) or ABSENT end },
  { "TTFT, ms", "ttft", spread "%.2f" }, { "TPOT, ms", "tpot", spread "%.3f" },
}
columns.VERIFICATION = {
  { "iterations", "iterations", plain "%.1f" }, { "tokens/iteration", "tokens_per_iteration", spread "%.2f" },
  { "path length", "path_length", plain "%.2f" }, { "acceptance rate", "acceptance_rate", plain("%.1f %%", 100) },
  { "tokens/iteration over the paper's depth", "paper_acceptance", plain "%.3f" }, -- may exceed 1
  { "nodes/tree", "nodes", plain "%.1f" }, { "depth", "depth", plain "%.2f" },
}
columns.MEMORY = {
  { "weights, MB", "weights", plain("%.1f", 1e-6) }, { "caches, MB", "caches", plain("%.1f", 1e-6) },
  { "device, MB", "device", plain("%.1f", 1e-6) }, { "process, MB", "host", plain("%.1f", 1e-6) },
  { "over plain decoding", "memory", function(d) return d and ("%+.1f %%"):format(100 * (d.mean - 1)) or ABSENT end },
}
columns.TIME = {}
for i, part in ipairs(summary.PARTS) do columns.TIME[i] = { part, part, plain "%.4f" } end
columns.EVERYTHING = {}
for _, group in ipairs { columns.SPEED, columns.VERIFICATION, columns.TIME, columns.MEMORY } do
  table.move(group, 1, #group, #columns.EVERYTHING + 1, columns.EVERYTHING)
end

-- A table with one row per arm, and no columns yet.
function columns.rows(arms)
  local t = { columns = { "" }, rows = {} }
  for i, arm in ipairs(arms) do t.rows[i] = { arm.label } end
  return t
end

-- Adds a column to a table of these arms, unless the column would be empty.
function columns.add(t, s, arms, where, column, reference)
  local cells, any = {}, false
  for i, arm in ipairs(arms) do
    local d = s:describe(column[2], summary.with(where, { arm = arm.label }), reference)
    cells[i], any = column[3](d), any or d ~= nil
  end
  if not any then return end
  t.columns[#t.columns + 1] = column[1]
  for i, cell in ipairs(cells) do table.insert(t.rows[i], cell) end
end

-- One row per arm, one column per metric.
function columns.by_metric(s, arms, where, list, reference)
  local t = columns.rows(arms)
  for _, column in ipairs(list) do columns.add(t, s, arms, where, column, reference) end
  return t
end

-- The tables of the policies' own tags and numbers (tree:tag, seq:log), with a row for each arm and tag or name of a
-- number; nil if there are none.
function columns.tags(s, arms)
  local t = { columns = { "", "tag", "verified", "decided", "expected of these", "accepted" }, rows = {} }
  for _, arm in ipairs(arms) do
    for _, tag in ipairs(s:tags(arm)) do
      local function part(n) return tag.decided > 0 and ("%.1f %%"):format(100 * n / tag.decided) or ABSENT end
      t.rows[#t.rows + 1] = { arm.label, tag.name, ("%d"):format(tag.verified), ("%d"):format(tag.decided),
                              part(tag.expected), part(tag.accepted) }
    end
  end
  return #t.rows > 0 and t or nil
end

function columns.logged(s, arms)
  local t = { columns = { "", "number", "times logged", "mean" }, rows = {} }
  for _, arm in ipairs(arms) do
    for _, of in ipairs(s:logged(arm)) do
      t.rows[#t.rows + 1] = { arm.label, of.name, ("%d"):format(of.n), ("%.6g"):format(of.sum / of.n) }
    end
  end
  return #t.rows > 0 and t or nil
end

-- One row per arm, one column per value of a scale or per set.
function columns.by_value(s, arms, where, name, values, metric, form)
  local t = columns.rows(arms)
  for i, value in ipairs(values) do t.columns[i + 1] = name == "set" and s:set_name(value) or params.text(value) end
  for i, arm in ipairs(arms) do
    for k, value in ipairs(values) do
      t.rows[i][k + 1] = form(s:describe(metric, summary.with(where, { arm = arm.label, [name] = value })))
    end
  end
  return t
end

return columns
