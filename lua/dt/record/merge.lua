-- Merges the files of an experiment's shards (dt.shard).
--
--   local whole = assert(merge.together({ record.read "s-1of2.jsonl", record.read "s-2of2.jsonl" }, paths))
--   whole.head, whole.runs                       -- as from record.read; every run names its shard
--   merge.missing(whole.shards, whole.runs)      -- a text about missing runs, or nil
--
-- Shards fit together if their heads and runs show the same program, models, policies, options and kind of machine, and
-- if all outputs of each text are the same. A run that is in several files, because a shard was copied or started
-- twice, counts once.
local record = require "dt.record"
local shard = require "dt.shard"

local merge = {}

local MOST_NAMED = 12 -- settings with missing runs that a message names

-- The keys in which shards may differ. Paths of models may differ between machines, since their hashes identify them.
local function ignored(a, b)
  return { began = true, shard = true, target = a.target_hash ~= nil and b.target_hash ~= nil,
           draft = a.draft_hash ~= nil and b.draft_hash ~= nil }
end

local function unfit(path, key, value, first, other)
  return ("%s has %s = %s, but %s has %s: only shards of one experiment can be merged"):format(path, key, value,
    first, other)
end

-- Returns a message if the head of the file at `path` does not fit that of the first file; or nil.
local function head_mistake(path, head, first_path, first)
  local part, other = shard.parse(head.shard or "-"), shard.parse(first.shard or "-")
  if not part or not part.name or not head.settings then
    return path .. ": not a shard, expected files that were written with --shard"
  end
  if part.of ~= other.of then return unfit(path, "shard", head.shard, first_path, first.shard) end
  local key, a, b = record.difference(head, first, ignored(head, first))
  return key and unfit(path, key, a, first_path, b)
end

-- Returns a message if the file at `path` has runs of another version of a policy; or nil. known: policy -> { source =,
-- path = }.
local function source_mistake(path, runs, known)
  for _, run in ipairs(runs) do
    local first = known[run.policy]
    if not first then
      known[run.policy] = { source = run.source, path = path }
    elseif first.source ~= run.source then
      return unfit(path, "the source of " .. run.policy, run.source, first.path, first.source)
    end
  end
end

-- Merges files: { head =, runs =, failures =, shards = the argument of merge.missing }, or nil and a message.
function merge.together(files, paths)
  local first, sources, outputs, known = files[1].head, {}, {}, {}
  local whole = { head = {}, runs = {}, failures = {}, shards = { settings = first.settings, given = {} } }
  for key, value in pairs(first) do
    if key ~= "shard" and key ~= "settings" then whole.head[key] = value end
  end
  for i, file in ipairs(files) do
    local message = head_mistake(paths[i], file.head, paths[1], first) or source_mistake(paths[i], file.runs, sources)
    if message then return nil, message end
    local part = shard.parse(file.head.shard)
    whole.shards.of, whole.shards.given[part.number] = part.of, true
    if file.head.began and file.head.began < (whole.head.began or "~") then whole.head.began = file.head.began end
    for _, run in ipairs(file.runs) do
      local ok
      ok, message = record.check_output(outputs, run)
      if not ok then return nil, paths[i] .. ": " .. message end
      run.shard = file.head.shard
      local identity = record.identity(run)
      if not known[identity] then known[identity], whole.runs[#whole.runs + 1] = true, run end
    end
    for _, failure in ipairs(file.failures or {}) do
      failure.shard, whole.failures[#whole.failures + 1] = file.head.shard, failure
    end
  end
  return whole
end

-- "linear K=3 (2 of 6 runs, shard 2)"
local function lacking(label, count, wanted, number)
  return ("%s (%d of %d runs, shard %d)"):format(label, count, wanted, number)
end

-- Returns a text about missing runs (shards without any run, and settings of the other shards that lack runs), or nil.
-- Failed runs count as made. shards: { settings =, of =, given = { [number] = true } }
function merge.missing(shards, runs, failures)
  runs = table.move(failures or {}, 1, #(failures or {}), #runs + 1, table.move(runs, 1, #runs, 1, {}))
  local counts, plain, there, seen = {}, {}, {}, {}
  for number in pairs(shards.given) do there[number] = true end
  for _, run in ipairs(runs) do
    local part, key = run.shard and shard.parse(run.shard), record.key(run)
    if part then
      there[part.number] = true
      local own = part.number .. "\0" .. key -- counted once, even if it ran on several nodes
      if run.arm == record.BASELINE and not seen[own] then
        seen[own], plain[part.number] = true, (plain[part.number] or 0) + 1
      end
    end
    if not seen[key] then seen[key], counts[run.arm] = true, (counts[run.arm] or 0) + 1 end
  end
  local absent, settings, wanted_plain = {}, {}, shards.settings[record.BASELINE] or 0
  local dealt, labels = shard.deal(shards.settings, shards.of), {}
  for label in pairs(dealt) do labels[#labels + 1] = label end
  table.sort(labels)
  local reported = {}
  for _, label in ipairs(labels) do
    local number, wanted = dealt[label], shards.settings[label]
    if not there[number] then
      if not reported[number] then absent[#absent + 1] = number end
    else
      if not reported[number] and (plain[number] or 0) < wanted_plain then
        settings[#settings + 1] = lacking("plain decoding", plain[number] or 0, wanted_plain, number)
      end
      if (counts[label] or 0) < wanted then
        settings[#settings + 1] = lacking(label, counts[label] or 0, wanted, number)
      end
    end
    reported[number] = true
  end
  table.sort(absent)
  local parts = {}
  if #absent > 0 then parts[1] = ("shard %s of %d is missing"):format(table.concat(absent, ", "), shards.of) end
  if #settings > 0 then
    local more = #settings > MOST_NAMED and (" and %d more"):format(#settings - MOST_NAMED) or ""
    parts[#parts + 1] = "unfinished " .. table.concat(settings, ", ", 1, math.min(#settings, MOST_NAMED)) .. more
  end
  return parts[1] and table.concat(parts, "; ")
end

-- Adds the runs of shards to the experiment file `out`, which is new or was merged from other shards of the same
-- experiment. Returns the number of runs that it has now, and a text about missing runs or nil; or, after a failure,
-- nil, a message and a kind.
function merge.write(out, files, paths)
  local whole, unfitting = merge.together(files, paths)
  if not whole then return nil, unfitting end
  local sources, outputs, known, new = {}, {}, {}, {}
  for _, run in ipairs(whole.runs) do sources[run.policy] = run.source and { [run.source] = true } end
  local file, message, kind = record.open(out, whole.head, sources)
  if not file then return nil, message, kind end
  for _, run in ipairs(file.runs) do known[record.identity(run)] = true end
  for _, list in ipairs { file.runs, whole.runs } do
    for _, run in ipairs(list) do
      local ok
      ok, message = record.check_output(outputs, run)
      if not ok then return nil, ("%s: %s"):format(out, message) end
      if list == whole.runs and not known[record.identity(run)] then new[#new + 1] = run end
    end
  end
  local ok
  ok, message, kind = file:append_all(new)
  if not ok then return nil, message, kind end
  known = {}
  for _, list in ipairs { file.runs, file.failures } do
    for _, run in ipairs(list) do known[record.key(run)] = true end
  end
  local failed = {}
  for _, failure in ipairs(whole.failures) do
    if not known[record.key(failure)] then failed[#failed + 1] = failure end
  end
  ok, message, kind = file:append_failures(failed)
  if not ok then return nil, message, kind end
  return #file.runs, merge.missing(whole.shards, file.runs, file.failures)
end

-- Merges the shards among some experiments for a report; the files' names show which belong together. Returns files,
-- and the paths by which to name them; or nil and a message if shards do not fit.
function merge.grouped(files, paths)
  local groups, of = {}, {}
  local function bare(path) return (path:gsub("%-%d+of%d+(%.jsonl)$", "%1")) end
  for i, file in ipairs(files) do
    local key = file.head.shard and bare(paths[i]):match "[^/]*$" or i
    if not of[key] then
      of[key] = { files = {}, paths = {}, shards = file.head.shard ~= nil }
      groups[#groups + 1] = of[key]
    end
    table.insert(of[key].files, file)
    table.insert(of[key].paths, paths[i])
  end
  local all, names = {}, {}
  for i, group in ipairs(groups) do
    local message
    all[i], names[i] = group.files[1], group.paths[1]
    if group.shards then
      all[i], message = merge.together(group.files, group.paths)
      if not all[i] then return nil, message end
      names[i] = bare(names[i])
      all[i].missing = merge.missing(all[i].shards, all[i].runs, all[i].failures)
    end
  end
  return all, names
end

return merge
