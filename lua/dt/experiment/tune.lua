-- The parts of `dtrun run tune`: the choice of settings, and successive halving (Jamieson and Talwalkar 2016). All
-- settings run one prompt, the better half runs the next two, the better half of those the next four, until the prompts
-- are used up.
local core = require "dt.core"
local json = require "dt.json"
local params = require "dt.policy.params"
local record = require "dt.record"

local tune = {}

-- ---- settings ------------------------------------------------------------------------------------------------------

-- A generator of random numbers in [0, 1) that gives the same numbers on every machine: xorshift64*, whose state is
-- never 0.
function tune.random(seed)
  local state = seed ~= 0 and seed or 0x9e3779b97f4a7c15
  return function()
    state = state ~ state >> 12
    state = state ~ state << 25
    state = state ~ state >> 27
    return (state * 0x2545F4914F6CDD1D >> 11) / 2.0 ^ 53
  end
end

-- A random value between low and high; on a logarithmic scale if they differ by more than a factor of 8, so that in
-- 1..64 each doubling is equally likely.
local function between(low, high, integer, random)
  local x
  if low > 0 and high / low > 8 then
    x = low * (high / low) ^ random()
  elseif integer then
    x = low + math.floor(random() * (high - low + 1))
  else
    x = low + (high - low) * random()
  end
  return integer and math.floor(x + 0.5) or tonumber(("%.2g"):format(x)) + 0.0
end

-- A random value of one parameter; with `near`, one close to that value.
local function draw(p, random, near)
  local space = p.tune
  if p.type ~= "integer" and p.type ~= "number" or p.one_of then
    space = p.one_of or { true, false }
    return space[math.floor(random() * #space) + 1]
  end
  local low, high = space[1], space[2]
  if near and p.type == "integer" then
    local reach = math.max(1, near // 4)
    low, high = math.max(low, near - reach), math.min(high, near + reach)
  elseif near then
    local reach = (high - low) / 8
    low, high = math.max(low, near - reach), math.min(high, near + reach)
  end
  return between(low, high, p.type == "integer", random)
end

-- The parameters that can be searched: a list of declarations.
function tune.space(info)
  local list = {}
  for _, p in ipairs(info.params) do
    if p.tune then list[#list + 1] = p end
  end
  return list
end

local function key_of(setting)
  local parts = {}
  for name, value in pairs(setting) do parts[#parts + 1] = name .. "=" .. params.text(value) end
  table.sort(parts)
  return table.concat(parts, " ")
end

-- The setting of a policy: its values of the parameters in `space`.
local function setting_of(info, space)
  local setting = {}
  for _, p in ipairs(space) do
    for _, q in ipairs(info.params) do
      if q.name == p.name then setting[p.name] = q.value end
    end
  end
  return setting
end

local TRIES = 200 -- per wanted setting; a policy's check may refuse most

-- A setting near another: one to three of its parameters get random values close to their old ones.
local function neighbour(space, near, random)
  local setting = {}
  for name, value in pairs(near) do setting[name] = value end
  for _ = 1, math.floor(random() * 3) + 1 do
    local p = space[math.floor(random() * #space) + 1]
    setting[p.name] = draw(p, random, near[p.name])
  end
  return setting
end

local function anywhere(space, random)
  local setting = {}
  for _, p in ipairs(space) do setting[p.name] = draw(p, random) end
  return setting
end

-- Returns up to n random settings that `allowed` accepts and that are not in `known`, a set of keys, to which they are
-- added. They are from the whole space, or near the settings of the list `near`.
function tune.draw(space, n, random, allowed, known, near)
  local list = {}
  for try = 1, n * TRIES do
    if #list == n then break end
    local setting = near and neighbour(space, near[try % #near + 1], random) or anywhere(space, random)
    local key = key_of(setting)
    if not known[key] and allowed(setting) then
      known[key] = true
      list[#list + 1] = setting
    end
  end
  return list
end

-- Returns the first n settings of a search (the defaults, those of each preset, and then random ones), the space, and
-- the function that tells whether the policy allows a setting. Returns nil and a message if there is no such policy or
-- nothing to tune.
function tune.first(pair, policy, n, random, known)
  local info, failure = pair:policy { policy = policy }
  if not info then return nil, failure.message end
  local space = tune.space(info)
  if #space == 0 then return nil, info.name .. " has no parameters to tune" end
  local list = { setting_of(info, space) }
  known[key_of(list[1])] = true
  for _, preset in ipairs(info.presets) do
    local setting = setting_of(pair:policy { policy = policy, preset = preset }, space)
    if not known[key_of(setting)] then
      known[key_of(setting)] = true
      list[#list + 1] = setting
    end
  end
  local function allowed(setting) return (pair:policy { policy = policy, params = setting }) ~= nil end
  local drawn = tune.draw(space, n - #list, random, allowed, known)
  table.move(drawn, 1, #drawn, #list + 1, list)
  return list, space, allowed
end

-- ---- successive halving --------------------------------------------------------------------------------------------

-- The rounds of halving n settings over that many prompts: { { settings =, first = prompt, last = prompt }, ... }.
function tune.rounds(n, prompts)
  local rounds, first, count = {}, 1, 1
  while first <= prompts do
    local last = n == 1 and #rounds > 0 and first - 1 or math.min(first + count - 1, prompts)
    if last < first then break end
    rounds[#rounds + 1] = { settings = n, first = first, last = last }
    first, count, n = last + 1, count * 2, (n + 1) // 2
  end
  return rounds
end

-- Returns the settings by score, best first; settings that reached later rounds come first. measure(settings, i)
-- returns a list of each setting's score on prompt i, where higher is better, or nil and the failure.
function tune.halve(settings, prompts, measure)
  local alive, list = {}, {}
  for i, setting in ipairs(settings) do alive[i] = { setting = setting, score = 0 } end
  for _, round in ipairs(tune.rounds(#settings, prompts)) do
    local group = {}
    while #alive > round.settings do table.insert(list, 1, table.remove(alive).setting) end
    for i, entry in ipairs(alive) do group[i] = entry.setting end
    for i = round.first, round.last do
      local scores, message, kind = measure(group, i)
      if not scores then return nil, message, kind end
      for k, entry in ipairs(alive) do entry.score = entry.score + scores[k] end
    end
    table.sort(alive, function(a, b) return a.score > b.score end)
  end
  for i = #alive, 1, -1 do table.insert(list, 1, alive[i].setting) end
  return list
end

-- ---- scores --------------------------------------------------------------------------------------------------------

-- The decoding speed of a run, without the prompt pass, which is the same for all settings and not part of a batch's
-- speed.
local function decoding_speed(run)
  local stats = run.stats
  local tokens, times = stats.tokens_per_iteration * stats.iterations, stats.time_ms
  return tokens / (tokens / stats.tokens_per_second - (times and times.prompt or 0) / 1000)
end

-- Returns the arms that have run all of these texts `repeats` times from the repeat `first` on, each with its mean
-- speedup of decoding over the texts: { { arm =, shard =, setting =, mean = }, ... }, in the order in which they ran.
-- The fastest of several repeats counts, also for plain decoding, since disturbances only slow a run. A run is compared
-- with plain decoding of the same shard and node.
function tune.scores(runs, texts, first, repeats)
  local wanted, plain, arms, of = {}, {}, {}, {}
  for _, text in ipairs(texts) do wanted[text.name] = true end
  local function counts(run)
    return wanted[run.prompt] and run["repeat"] >= first and run["repeat"] < first + repeats
  end
  local function case_of(run) return ("%s\0%s\0%s"):format(run.prompt, run.shard or "", run.node or "") end
  for _, run in ipairs(runs) do
    if run.arm == record.BASELINE and counts(run) then
      plain[case_of(run)] = math.max(plain[case_of(run)] or 0, decoding_speed(run))
    end
  end
  for _, run in ipairs(runs) do
    if run.arm ~= record.BASELINE and counts(run) and plain[case_of(run)] then
      local key = run.arm .. "\0" .. (run.shard or "")
      if not of[key] then
        of[key] = { arm = run.arm, shard = run.shard, setting = run.params, n = 0, best = {} }
        arms[#arms + 1] = of[key]
      end
      local arm, speedup = of[key], decoding_speed(run) / plain[case_of(run)]
      arm.n, arm.best[run.prompt] = arm.n + 1, math.max(arm.best[run.prompt] or 0, speedup)
    end
  end
  local whole = {}
  for _, arm in ipairs(arms) do
    if arm.n == #texts * repeats then
      arm.mean = 0
      for _, text in ipairs(texts) do arm.mean = arm.mean + arm.best[text.name] / #texts end
      whole[#whole + 1] = arm
    end
  end
  return whole
end

-- ---- the preset ----------------------------------------------------------------------------------------------------

-- Returns a text that names what is faster than the setting found, or nil. found: the speedups of decoding on texts
-- that the search did not use, { tuned =, defaults = }.
function tune.faster(found)
  local list = {}
  if found.tuned < found.defaults then list[1] = "the defaults" end
  if found.tuned < 1 then list[#list + 1] = "plain decoding" end
  return list[1] and table.concat(list, " and ")
end

-- Writes the preset `tuned` of a policy for this pair and machine. wanted: a description of the options, if texts were
-- not plain and greedy, or nil. Returns the file's path, or nil, a message and "device".
function tune.save(pair, policy, setting, found, wanted)
  local identity, info = pair:identity(), pair:policy { policy = policy }
  local preset = { schema = "dtrun.preset/1", policy = policy, source = info.source, preset = "tuned", params = setting,
                   machine = core.machine, version = core.version, speedup = found, tuned_for = wanted }
  for _, more in ipairs { record.facts(pair), identity } do
    for name, value in pairs(more) do preset[name] = value end
  end
  local path, message = core.save_tuned(pair, policy, info.uses_draft, json.encode(preset, true) .. "\n")
  return path, message, "device"
end

return tune
