-- Summarizes an experiment's runs, arm by arm. What varies is derived from the runs: settings belong to an arm (its
-- parameters, and axes that never change within it), scales belong to the text (the wanted length, and axes that
-- change). A setting called "study" divides arms into groups that are reported one by one.
--
--   local s = summary.new(record.read "main.jsonl")
--   for _, arm in ipairs(s.arms) do print(arm.label, s:describe("speedup", { arm = arm.label }).mean) end
local record = require "dt.record"
local statistics = require "dt.statistics"

local summary = {}

-- Divisor of tokens per iteration in the papers' acceptance rate: the maximum number of tokens that the paper's tree
-- can commit.
local PAPER_DEPTH = {
  linear = function(p) return math.tointeger(p.K) end,
  fixed_tree = function(p) return math.tointeger(p.D) and p.D + 2 end,
  dynatree = function(p) return math.tointeger(p.D0) and p.D0 + 2 end,
}

summary.PARTS = { "prompt", "draft", "verify", "commit", "policy", "other" } -- parts of time_ms

-- The metrics of a run; each is nil for a run that does not have it.
local METRICS = {
  speed = function(run) return run.stats.tokens_per_second end,
  ttft = function(run) return run.stats.ttft_ms end,
  tpot = function(run) return run.stats.tpot_ms end,
  iterations = function(run) return run.stats.iterations end,
  tokens_per_iteration = function(run) return run.stats.tokens_per_iteration end,
  path_length = function(run) return run.stats.path_length end,
  acceptance_rate = function(run) return run.stats.acceptance_rate end,
  paper_acceptance = function(run)
    local depth = PAPER_DEPTH[run.policy]
    local most = depth and depth(run.params)
    return most and most >= 1 and run.stats.tokens_per_iteration and run.stats.tokens_per_iteration / most
  end,
  nodes = function(run) return run.stats.tree_nodes_mean end,
  depth = function(run) return run.stats.tree_depth_mean end,
}
for _, key in ipairs { "host", "device", "weights", "caches" } do
  METRICS[key] = function(run) return run.stats.peak_memory_bytes and run.stats.peak_memory_bytes[key] end
end
for _, part in ipairs(summary.PARTS) do -- milliseconds per token
  METRICS[part] = function(run)
    local stats = run.stats
    local tokens = stats.tokens_per_iteration and stats.tokens_per_iteration * stats.iterations
    return stats.time_ms and tokens and tokens > 0 and stats.time_ms[part] / tokens
  end
end

-- Peak memory where the models are: on the device, or in the process.
local function used(run)
  local bytes = run.stats.peak_memory_bytes
  return bytes and (bytes.device or bytes.host)
end

-- Axes whose values are ways of generating the same texts. Each way gets tables of its own.
summary.WAYS = { "sampling", "reasoning" }

local Summary = {}
Summary.__index = Summary

-- Adds value to a short list, unless the list has it already.
local function remember(list, value)
  for _, known in ipairs(list) do
    if known == value then return end
  end
  list[#list + 1] = value
end

-- The axes that take several values within one arm.
local function axes_of_texts(runs)
  local seen, changing = {}, {}
  for _, run in ipairs(runs) do
    local axes = seen[run.arm] or {}
    seen[run.arm] = axes
    for name, value in pairs(run.axes) do
      if axes[name] ~= nil and axes[name] ~= value then changing[name] = true end
      axes[name] = value
    end
  end
  return changing
end

local function add_arm(s, run, changing)
  local settings = {}
  for name, value in pairs(run.params) do settings[name] = value end
  for name, value in pairs(run.axes) do
    if not changing[name] then settings[name] = value end
  end
  local arm = { label = run.arm, policy = run.policy, preset = run.preset, settings = settings,
                plain = run.arm == record.BASELINE }
  table.insert(run.bound and s.bounds or s.arms, arm)
  s.of_arm[run.arm] = {}
end

local function add_scales(s, changing)
  local values = { tokens = {} }
  for name in pairs(changing) do values[name] = {} end
  for _, run in ipairs(s.runs) do
    remember(values.tokens, run.tokens)
    for name in pairs(changing) do
      if math.type(run.axes[name]) then remember(values[name], run.axes[name]) end
    end
  end
  for name, list in pairs(values) do
    if #list > 1 then
      table.sort(list)
      s.scales[#s.scales + 1] = { name = name, values = list }
    end
  end
  table.sort(s.scales, function(a, b) return a.name < b.name end)
end

-- Returns the summary s of a file from record.read. s.arms: {label, policy, preset, settings, plain}, plain decoding
-- first; s.bounds: the arms of dt.bound; s.sets: names; s.ways: {axis, label}, from an axis of summary.WAYS; s.scales:
-- {name, values}. Runs with a trace are in s.traced only, since their times differ. Disturbed runs are left out, unless
-- there are no others (record.counting).
function summary.new(file)
  local runs = record.counting(file.runs)
  local s = { head = file.head, runs = {}, traced = {}, plain = record.baseline(runs),
              arms = {}, bounds = {}, of_arm = {}, sets = {}, ways = {}, scales = {} }
  for _, run in ipairs(runs) do table.insert(run.probability and s.traced or s.runs, run) end
  local changing = axes_of_texts(s.runs)
  for _, run in ipairs(s.runs) do
    if not s.of_arm[run.arm] then add_arm(s, run, changing) end
    table.insert(s.of_arm[run.arm], run)
    remember(s.sets, run.set)
  end
  for i, arm in ipairs(s.arms) do
    if arm.plain then table.insert(s.arms, 1, table.remove(s.arms, i)) end
  end
  table.sort(s.bounds, function(a, b) return a.label < b.label end)
  for _, axis in ipairs(summary.WAYS) do
    local labels = {}
    for _, run in ipairs(s.runs) do remember(labels, run.axes[axis]) end
    for _, label in ipairs(labels) do s.ways[#s.ways + 1] = { axis = axis, label = label } end
  end
  add_scales(s, changing)
  return setmetatable(s, Summary)
end

-- Adds up stats[key] over the runs of an arm, for each name, with add(sum, entry). The sums are sorted by name.
local function added(s, arm, key, add)
  local list, of = {}, {}
  for _, run in ipairs(s.of_arm[arm.label]) do
    for name, entry in pairs(run.stats[key] or {}) do
      if not of[name] then
        of[name] = { name = name }
        list[#list + 1] = of[name]
      end
      add(of[name], entry)
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- The tags of an arm's nodes: { { name =, verified =, decided =, expected =, accepted = }, .. }, over all its runs.
function Summary:tags(arm)
  return added(self, arm, "tags", function(sum, tag)
    for _, key in ipairs { "verified", "decided", "expected", "accepted" } do sum[key] = (sum[key] or 0) + tag[key] end
  end)
end

-- The numbers that an arm's policy logged: { { name =, n =, sum = }, .. }.
function Summary:logged(arm)
  return added(self, arm, "log", function(sum, of)
    sum.n, sum.sum = (sum.n or 0) + of.n, (sum.sum or 0) + of.n * of.mean
  end)
end

-- The name of a set in tables and figures. If the set has only one prompt, it is that prompt's name, which says more
-- than a folder's name.
function Summary:set_name(set)
  local only
  for _, run in ipairs(self.runs) do
    if run.set == set then
      if only and run.prompt ~= only then return set end
      only = run.prompt
    end
  end
  return only and only:gsub("^files/", "") or set
end

-- The groups of runs that are compared with each other: the ways if there are several, otherwise the sets; each
-- { label =, name = for names of files, where = its selection }.
function Summary:groups()
  local list = {}
  for i, way in ipairs(self.ways) do
    list[i] = { label = way.label, name = way.label, where = { [way.axis] = way.label } }
  end
  if #list > 1 then return list end
  for i, set in ipairs(self.sets) do list[i] = { label = self:set_name(set), name = set, where = { set = set } } end
  return list
end

-- A copy of the selection `where` (or nil), with the conditions in `more` added.
function summary.with(where, more)
  local copy = {}
  for _, t in ipairs { where or {}, more } do
    for name, value in pairs(t) do copy[name] = value end
  end
  return copy
end

local OWN = { arm = true, set = true, tokens = true }

local function fits(run, where)
  for name, value in pairs(where) do
    if (OWN[name] and run or run.axes)[name] ~= value then return false end
  end
  return true
end

-- Selects runs by any of arm, set, length and axes: {arm = "ar", set = "novels", tokens = 300, chars = 200}.
function Summary:select(where)
  local found = {}
  for _, run in ipairs(where.arm and self.of_arm[where.arm] or self.runs) do
    if fits(run, where) then found[#found + 1] = run end
  end
  return found
end

-- A list of one number per text and length: the mean of f(run) over its repeats; left out if f returns nil.
local function per_case(runs, f)
  local list, of = {}, {}
  for _, run in ipairs(runs) do
    local value = f(run)
    if value then
      local case = record.case(run)
      if not of[case] then
        of[case] = { sum = 0.0, n = 0 }
        list[#list + 1] = of[case]
      end
      of[case].sum, of[case].n = of[case].sum + value, of[case].n + 1
    end
  end
  for i, case in ipairs(list) do list[i] = case.sum / case.n end
  return list
end

-- Returns the statistics of a metric over texts, or nil. "speedup" is the ratio to plain decoding of the same text;
-- "decoding" is the same after the prompt, by the times per token;
-- "against" is the ratio to the arm `reference` (if that ran in another shard or on another node, the ratio of the two
-- speedups); "memory" is the ratio of peak memory to that of plain decoding.
function Summary:describe(metric, where, reference)
  local f = METRICS[metric]
  if metric == "speedup" then
    f = function(run) return record.speedup(run, self.plain(run)) end
  elseif metric == "decoding" then
    f = function(run)
      local plain = self.plain(run)
      return plain and plain.stats.tpot_ms and run.stats.tpot_ms and plain.stats.tpot_ms / run.stats.tpot_ms
    end
  elseif metric == "memory" then
    f = function(run) return self.plain(run) and used(run) and used(run) / used(self.plain(run)) end
  elseif metric == "against" then
    local base = record.baseline(self.runs, reference)
    f = function(run)
      local other = base(run)
      if not other or other.shard == run.shard and other.node == run.node then return record.speedup(run, other) end
      local own, its = record.speedup(run, self.plain(run)), record.speedup(other, self.plain(other))
      return own and its and own / its
    end
  end
  return statistics.describe(per_case(self:select(where), f))
end

-- The statistics by which arms are ranked: the speedup, or the speed if plain decoding did not run.
function Summary:merit(arm, where)
  where = summary.with(where, { arm = arm.label })
  return self:describe("speedup", where) or self:describe("speed", where) or { mean = 0 }
end

-- The arms given, the fastest first.
function Summary:ranked(arms, where)
  local merit, sorted = {}, {}
  for i, arm in ipairs(arms) do merit[arm], sorted[i] = self:merit(arm, where).mean, arm end
  table.sort(sorted, function(a, b) return merit[a] > merit[b] or merit[a] == merit[b] and a.label < b.label end)
  return sorted
end

-- The kind of an arm, which is the same for arms that differ only in settings: "dynatree narrow".
function summary.kind(arm) return arm.policy .. (arm.preset and " " .. arm.preset or "") end

-- Selects at most n arms: all if there are no more; otherwise plain decoding and the fastest others, at most `each` of
-- a kind.
function Summary:few(arms, n, each)
  if #arms <= n then return arms end
  local chosen, of_kind = {}, {}
  if arms[1].plain then chosen[1] = arms[1] end
  for _, arm in ipairs(self:ranked(arms)) do
    local kind = summary.kind(arm)
    if not arm.plain and #chosen < n and (of_kind[kind] or 0) < (each or n) then
      of_kind[kind] = (of_kind[kind] or 0) + 1
      chosen[#chosen + 1] = arm
    end
  end
  return chosen
end

-- Groups things by key(thing), in the order of their first appearance: { { key =, things.. }, .. }; things without a
-- key are left out.
function summary.grouped(things, key)
  local groups, of = {}, {}
  for _, thing in ipairs(things) do
    local k = key(thing)
    if k ~= nil then
      if not of[k] then
        of[k] = { key = k }
        groups[#groups + 1] = of[k]
      end
      table.insert(of[k], thing)
    end
  end
  return groups
end

-- Groups the arms by study; arms without a study (plain decoding) are in each group. If there are no studies, there is
-- one group without a key.
function Summary:studies()
  local groups = summary.grouped(self.arms, function(arm) return arm.settings.study end)
  if #groups == 0 then return { self.arms } end
  for _, group in ipairs(groups) do
    local others = 0
    for _, arm in ipairs(self.arms) do
      if not arm.settings.study then
        others = others + 1
        table.insert(group, others, arm)
      end
    end
  end
  return groups
end

-- The numeric settings that differ among arms, as a list of { name =, values = sorted list }.
function summary.varying(arms)
  local values, list = {}, {}
  for _, arm in ipairs(arms) do
    for name, value in pairs(arm.settings) do
      if math.type(value) then
        values[name] = values[name] or {}
        remember(values[name], value)
      end
    end
  end
  for name, found in pairs(values) do
    table.sort(found)
    if #found > 1 then list[#list + 1] = { name = name, values = found } end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

return summary
