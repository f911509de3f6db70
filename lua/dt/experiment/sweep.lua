-- The parts of `dtrun run sweep`: grids as users type them, the arms of a grid, and the table of the best.
local experiment = require "dt.experiment"
local grid = require "dt.api.grid"
local params = require "dt.policy.params"
local record = require "dt.record"

local sweep = {}

-- ---- grids ---------------------------------------------------------------------------------------------------------

-- Adds the values of "3" or "1..10" or "0.1..0.5:0.1" to the list of texts. Returns nil and a message if it is not a
-- range.
local function add_values(list, item, numeric)
  local from, rest = item:match "^(.-)%.%.(.+)$"
  if not (from and numeric) then
    list[#list + 1] = item
    return true
  end
  local to, step = rest:match "^(.-):(.+)$"
  from, to, step = tonumber(from), tonumber(to or rest), tonumber(step or 1)
  if not (from and to and step) or step == 0 or (to - from) / step < 0 then
    return nil, ("'%s' is not a range FROM..TO or FROM..TO:STEP"):format(item)
  end
  for _, point in ipairs(grid { x = { from = from, to = to, step = step } }) do
    list[#list + 1] = params.text(point.x)
  end
  return true
end

-- Returns the values of "4,8..10", checked against the declaration; or nil and a message.
function sweep.values(declared, text)
  local texts, values = {}, {}
  for item in (text .. ","):gmatch "([^,]*)," do
    local ok, message = add_values(texts, item, declared.type == "integer" or declared.type == "number")
    if not ok then return nil, ("%s: %s"):format(declared.name, message) end
  end
  for i, item in ipairs(texts) do
    local value, message = params.parse(declared, item)
    if message then return nil, message end
    values[i] = value
  end
  return values
end

-- Returns the arms of one policy: all combinations of the values in `sets` ({ {name, text}, ... }) for the parameters
-- that it declares. Combinations that the policy's check refuses are left out; their number is the second result.
-- Returns nil and a message after a mistake.
local function arms_of(pair, policy, preset, sets)
  local info, failure = pair:policy { policy = policy, preset = preset }
  if not info then return nil, failure.message end
  local declared, lists, arms, left_out = {}, {}, {}, 0
  for _, p in ipairs(info.params) do declared[p.name] = p end
  for _, set in ipairs(sets) do
    if declared[set.name] then
      local values, message = sweep.values(declared[set.name], set.text)
      if not values then return nil, ("%s: %s"):format(info.name, message) end
      lists[set.name], set.used = values, true
    end
  end
  local message
  for _, setting in ipairs(grid(lists)) do
    local arm = { policy = policy, preset = preset, params = setting, axes = setting }
    local ok
    ok, message = experiment.check(pair, arm)
    if ok then arms[#arms + 1] = arm else left_out = left_out + 1 end
  end
  if #arms == 0 then return nil, message end
  return arms, left_out
end

-- Returns the arms of policies over the grids given as "NAME=VALUES", of which each policy uses the names that it
-- declares, and the number of combinations that policies refuse. Returns nil and a message for a name that no policy
-- has, or a value out of range.
function sweep.arms(pair, policies, preset, grids)
  local sets, known, arms, left_out = {}, {}, {}, 0
  for i, text in ipairs(grids) do
    local name, values = text:match "^([^=]+)=(.+)$"
    if not name then return nil, ("--set %s: expected NAME=VALUES, as in K=1,2,4 or K=1..10"):format(text) end
    if known[name] then return nil, ("--set %s is given twice: give its values separated by commas"):format(name) end
    known[name], sets[i] = true, { name = name, text = values }
  end
  for _, policy in ipairs(policies) do
    local list, more = arms_of(pair, policy, preset, sets)
    if not list then return nil, more end
    table.move(list, 1, #list, #arms + 1, arms)
    left_out = left_out + more
  end
  for _, set in ipairs(sets) do
    if not set.used then
      return nil, ("--set %s: %s has no such parameter (list them with 'dtrun POLICY --help')"):format(
        set.name, table.concat(policies, ", "))
    end
  end
  return arms, left_out
end

-- ---- the best ------------------------------------------------------------------------------------------------------

-- Ranks the arms of some runs, the fastest first: { arm=, n=, speedup = mean over runs of the ratio to plain decoding,
-- tokens_per_iteration = mean, acceptance = accepted / verified nodes (nil: none verified), tokens_per_second = mean }.
function sweep.rank(runs)
  runs = record.counting(runs)
  local plain, by_arm, list = record.baseline(runs), {}, {}
  for _, run in ipairs(runs) do
    local ratio = record.speedup(run, plain(run))
    if ratio and run.arm ~= record.BASELINE then
      local arm = by_arm[run.arm]
      if not arm then
        arm = { arm = run.arm, n = 0, speedup = 0, tokens_per_iteration = 0, tokens_per_second = 0, drafted = 0,
                accepted = 0 }
        by_arm[run.arm], list[#list + 1] = arm, arm
      end
      arm.n = arm.n + 1
      arm.speedup = arm.speedup + ratio
      for _, key in ipairs { "tokens_per_iteration", "tokens_per_second", "drafted", "accepted" } do
        arm[key] = arm[key] + (run.stats[key] or 0)
      end
    end
  end
  for _, arm in ipairs(list) do
    for _, key in ipairs { "speedup", "tokens_per_iteration", "tokens_per_second" } do arm[key] = arm[key] / arm.n end
    arm.acceptance = arm.drafted > 0 and arm.accepted / arm.drafted or nil
  end
  table.sort(list, function(a, b)
    if a.speedup ~= b.speedup then return a.speedup > b.speedup end
    return a.arm < b.arm
  end)
  return list
end

-- The table of the first k of a ranking, as text.
function sweep.table(ranking, k)
  local lines = { "speedup   tokens/iteration  acceptance  tokens/s  setting (speeds: prompt included)" }
  for i = 1, math.min(k, #ranking) do
    local arm = ranking[i]
    lines[i + 1] = ("%7.3fx %17.3f %11s %9.1f  %s"):format(arm.speedup, arm.tokens_per_iteration,
      arm.acceptance and ("%.3f"):format(arm.acceptance) or "-", arm.tokens_per_second, arm.arm)
  end
  return table.concat(lines, "\n")
end

return sweep
