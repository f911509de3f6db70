-- Experiment files in JSON lines. The first line, the head, describes the experiment; each further line is a finished
-- run or a failure. Lines are only added, and each is on disk before the next run begins. If the last line is
-- incomplete, because the program was killed, it is ignored.
--
-- The head
--   schema "dtrun.runs/1", experiment ("sweep", "paper main"), protocol {settings of all runs}, machine, backend,
--   threads, target, target_dtype, draft, draft_dtype, draft_vocab, draft_output, draft_head and draft_window
--   (none: left out), cache_dtype, activations, rope_scaling (as in the target's files: left out), corpus
--   (number of tokens, and a digest of them; none: left out), version, commit (none: left out), build, target_hash,
--   draft_hash (digests of the program and of samples of the models' files, see lua/files/identity.h),
--   began (time, in UTC; the only key in which a file may differ from the program that continues it); of a shard's
--   file (dt.shard) also shard ("3/4") and settings {label of each arm of all shards = its runs}
-- A run
--   schema "dtrun.run/1", arm (its label: "dynatree D0=5"; plain decoding is "ar"), policy, source (a digest of the
--   policy's text), preset (none: left out), window ("1020+4": numbers of last and first tokens that the target sees;
--   left out: all), params {as given}, axes {values of arm and prompt on the axes of tables and figures:
--   {chars = 200}}, set, prompt (both together name one text), tokens (wanted), repeat (1..), finish_reason,
--   prompt_tokens, costs (that the policy used: "table", "learn"; left out: none), stats (those of the
--   result), tries (number of tries, if it was disturbed), disturbed (the cause, if even the last try was),
--   question and turns (of conversations: {id =, category =}, and what dt.experiment.conversations keeps of each),
--   probability (of runs with a trace: from dt.scatter), bound (true: the bound of a text, from dt.bound), node, job
--   and cores (its place: dt.record.place; without a job, job is left out), shard (in merged files: its shard)
--
-- A failure
--   schema "dtrun.failure/1": a run that its policy's error ended; arm, policy, source, set, prompt, tokens, repeat,
--   node, job, cores and shard as in a run, and error (the message). It counts until that run exists.
--
--   local file = assert(record.read "sweep.jsonl")        -- { head = {...}, runs = { {...}, ... }, failures = {...} }
--   local plain = record.baseline(file.runs)
--   for _, run in ipairs(file.runs) do print(run.arm, record.speedup(run, plain(run))) end
local core = require "dt.core"
local json = require "dt.json"
local schema = require "dt.record.schema"

local record = { BASELINE = "ar", AGAIN = "start again with --out and another file" }

-- Returns the text of a file, or nil, a message and a code. A device counts as empty.
local function contents(path)
  local file, message, code = io.open(path, "rb")
  if not file then return nil, message, code end
  local size, text
  size, message = file:seek "end"
  if size and size > 0 then
    file:seek "set"
    text, message = file:read "a"
  end
  file:close()
  if text or size == 0 then return text or "" end
  return nil, path .. ": " .. message
end

local ENOENT = 2

-- The facts about a pair in a head.
function record.facts(pair)
  local facts = { backend = pair.backend, threads = pair.threads, target = pair.target.path,
                  draft = pair.draft and pair.draft.path or nil }
  for _, name in ipairs(core.facts) do facts[name] = pair[name] end
  return facts
end

-- Identifies the text and length of a run, which must equal those of the plain decoding that it is compared with.
function record.case(run) return ("%s\0%s\0%d"):format(run.set, run.prompt, run.tokens) end

-- Identifies a run by its text, length, arm and repeat.
function record.key(run) return ("%s\0%s\0%d"):format(record.case(run), run.arm, run["repeat"]) end

-- Identifies a run among all others in its file. Plain decoding runs in each shard, and again on each node that a shard
-- uses.
function record.identity(run)
  return ("%s\0%s\0%s"):format(record.key(run), run.shard or "", run.arm == record.BASELINE and run.node or "")
end

local function doubled(path, number, first, run)
  return ("%s:%d: repeats the run of line %d (%s, %s, %d tokens, repeat %d): two programs have written this file; "
    .. "delete one of the lines"):format(path, number, first, run.arm, run.prompt, run.tokens, run["repeat"])
end

-- The failures that count: the last one of each run that has not succeeded since.
local function standing(failures, runs)
  if #failures == 0 then return failures end -- the usual case, for every run of a long file
  local last, list = {}, {}
  for _, failure in ipairs(failures) do last[record.key(failure)] = failure end
  for _, run in ipairs(runs) do last[record.key(run)] = nil end
  for _, failure in ipairs(failures) do
    if last[record.key(failure)] == failure then list[#list + 1] = failure end
  end
  return list
end

-- Iterates over the complete lines of a text, each with the position after it. It uses plain find, since a pattern
-- would scan an incomplete line once for each of its bytes.
local function each_line(text)
  local at = 1
  return function()
    local stop = text:find("\n", at, true)
    if not stop then return nil end
    local line = text:sub(at, stop - 1)
    at = stop + 1
    return line, at
  end
end

-- Returns { head =, runs =, failures =, whole = bytes up to the end of the last complete line }; head is nil for an
-- empty file.
local function parse(path, text)
  local file, number, line_of = { runs = {}, failures = {}, whole = 0 }, 0, {}
  for line, stop in each_line(text) do
    number = number + 1
    local value, message = json.decode(line)
    message = message and message:gsub("line 1: ", "") or schema.mistake(value, number == 1)
    if message then return nil, ("%s:%d: not a line of an experiment: %s"):format(path, number, message) end
    if number == 1 then
      file.head = value
    elseif value.schema == schema.FAILURE then
      file.failures[#file.failures + 1] = value
    else
      local identity = record.identity(value)
      if line_of[identity] then return nil, doubled(path, number, line_of[identity], value) end
      line_of[identity], file.runs[#file.runs + 1] = number, value
    end
    file.whole = stop - 1
  end
  file.failures = standing(file.failures, file.runs)
  return file
end

-- Reads a finished or unfinished experiment: { head =, runs =, failures = }, or nil and a message.
function record.read(path)
  local text, message = contents(path)
  if not text then return nil, message end
  local file
  file, message = parse(path, text)
  if file and not file.head then return nil, path .. ": the file is empty, expected an experiment" end
  return file, message
end

-- Facts of a head that no option can change.
local PROGRAM = { commit = true, build = true, version = true, target_hash = true, draft_hash = true }

-- Reported only if nothing else differs, since it follows from target_dtype.
local FOLLOWS = "activations"

-- Returns the key in which two heads differ, and both values as texts; or nil. protocol and settings are compared key
-- by key.
function record.difference(a, b, ignored)
  local all = {}
  for key in pairs(a) do all[key] = true end
  for key in pairs(b) do all[key] = true end
  all[FOLLOWS] = nil
  local keys = schema.sorted_keys(all)
  keys[#keys + 1] = FOLLOWS
  for _, key in ipairs(keys) do
    if not ignored[key] then
      local x, y = a[key], b[key]
      if (key == "protocol" or key == "settings") and schema.is_object(x) and schema.is_object(y) then
        local inner, inner_x, inner_y = record.difference(x, y, {})
        if inner then return key == "settings" and "runs of " .. inner or inner, inner_x, inner_y end
      elseif json.encode(x) ~= json.encode(y) then
        return key, json.encode(x), json.encode(y)
      end
    end
  end
end

-- Returns the reason why a file with the head `old` cannot be continued with the head `new`, and what to do; or nil.
local function other_head(old, new)
  if old.shard and not new.shard then
    return ("the file of shard %s: give the same --shard to continue it, or another file"):format(old.shard)
  end
  local key, a, b = record.difference(old, new, { began = true })
  return key and ("made with %s = %s, not %s: %s"):format(key, a, b, PROGRAM[key] and record.AGAIN
    or "give the same options to continue it, or another file")
end

-- Returns a message if the policy of some run has another text than that of the runs to be added; or nil. sources:
-- policy -> { [source] = true }.
local function other_source(runs, sources)
  for _, run in ipairs(runs) do
    local known = sources[run.policy]
    if known and not known[run.source] then
      return ("its runs of %s used another version of that policy (source %s, now %s): %s"):format(run.policy,
        run.source, next(known), record.AGAIN)
    end
  end
end

local File = {}
File.__index = File

-- Adds a finished run. Returns true when it is on disk; otherwise nil, a message and "device", with the file unchanged.
function File:append(run) return self:append_all { run } end

-- Adds several runs, either all of them or none.
function File:append_all(runs) return self:add(self.runs, runs, schema.RUN) end

-- Adds several failures, either all of them or none.
function File:append_failures(failures) return self:add(self.failures, failures, schema.FAILURE) end

function File:add(list, runs, name)
  local lines = {}
  for i, run in ipairs(runs) do
    run.schema = name
    local message = schema.mistake(run)
    if message then error("record: a run: " .. message, 2) end
    lines[i] = json.encode(run)
  end
  if self.path and lines[1] then
    local ok, message = core.append(self.path, table.concat(lines, "\n"))
    if not ok then return nil, message, "device" end
  end
  table.move(runs, 1, #runs, #list + 1, list)
  self.failures = standing(self.failures, self.runs)
  return true
end

-- Opens the file at path to add runs: a new file, or one with the same head, whose incomplete last line is removed.
-- With path = nil runs are kept in memory only. Returns nil and a message if the file cannot be continued, for example
-- because another process writes it; and "device" in addition if the disk is full. The file belongs to this process
-- until the process ends. sources: the versions of the policies whose runs will be added, policy -> { [source] = true
-- }, or nil; a file with runs of other versions is refused.
function record.open(path, head, sources)
  head.schema = schema.HEAD
  local message = schema.mistake(head, true)
  if message then error("record: the head: " .. message, 2) end
  core.at_interrupt(path and "interrupted: " .. path .. " has the finished runs; the same command continues there"
    or "interrupted: the finished runs are lost; with --out FILE the same command continues where it stopped")
  if not path then return setmetatable({ head = head, runs = {}, failures = {} }, File) end
  local ok, text, code
  ok, message = core.lock(path)
  if not ok then return nil, message end
  text, message, code = contents(path)
  if not text and code ~= ENOENT then return nil, message end
  text = text or ""
  local file
  file, message = parse(path, text)
  if not file then return nil, message end
  if file.head then
    local differs = other_head(file.head, head) or other_source(file.runs, sources or {})
    if differs then return nil, ("%s: %s"):format(path, differs) end
  end
  if file.whole < #text then ok, message = core.truncate(path, file.whole) end
  if ok and not file.head then ok, message = core.append(path, json.encode(head)) end
  if not ok then return nil, message, "device" end
  return setmetatable({ path = path, head = file.head or head, runs = file.runs, failures = file.failures }, File)
end

-- Returns a function from a run to the run of plain decoding that it is compared with. That has the same text and
-- length and, if possible, the same shard and node, otherwise the same shard, otherwise any; among these it is the one
-- of the same repeat, or otherwise the first. The function returns nil if there is none.
function record.baseline(runs, arm)
  local plain = {}
  local function note(key, run)
    plain[key] = plain[key] or { first = run }
    plain[key][run["repeat"]] = run
  end
  local function nearest(run)
    local case = record.case(run)
    local here = case .. "\0" .. (run.shard or "")
    return here .. "\0" .. (run.node or ""), here, case
  end
  for _, run in ipairs(runs) do
    if run.arm == (arm or record.BASELINE) then
      for _, key in ipairs { nearest(run) } do note(key, run) end
    end
  end
  return function(run)
    local exact, here, case = nearest(run)
    local found = plain[exact] or plain[here] or plain[case]
    return found and (found[run["repeat"]] or found.first)
  end
end

-- Checks that a run's output equals that of the first run of its text, length and window, which is kept in `first`.
-- Returns true, or nil, a message and "device".
function record.check_output(first, run)
  local case = record.case(run) .. "\0" .. (run.window or "")
  local other = first[case]
  if not other then first[case] = run return true end
  if other.stats.output_hash == run.stats.output_hash then return true end
  return nil, ("%s changed the output of %s, %d tokens: hash %s, that of %s is %s"):format(
    run.arm, run.prompt, run.tokens, run.stats.output_hash, other.arm, other.stats.output_hash), "device"
end

-- The runs that count: of each arm, text and length, the undisturbed runs, or all runs if there are none.
function record.counting(runs)
  local quiet, counting = {}, {}
  local function key(run) return record.case(run) .. "\0" .. run.arm end
  for _, run in ipairs(runs) do quiet[key(run)] = quiet[key(run)] or not run.disturbed end
  for _, run in ipairs(runs) do
    if not (run.disturbed and quiet[key(run)]) then counting[#counting + 1] = run end
  end
  return counting
end

-- A sentence about disturbed runs, or nil.
function record.disturbance(runs)
  local again, still, why, count = 0, 0, nil, 0
  for _, run in ipairs(runs) do
    if (run.tries or 1) > 1 then again = again + 1 end
    if run.disturbed then still, why = still + 1, run.disturbed end
  end
  if again == 0 then return nil end
  for _, run in ipairs(record.counting(runs)) do count = count + (run.disturbed and 1 or 0) end
  return ("The machine was busy: %d of %d runs were disturbed and repeated; %s."):format(again, #runs, still > 0
    and ("%d were disturbed even in the last try (one: %s), and %d of these count because there are no others"):format(
      still, why, count)
    or "repeating succeeded for all of them")
end

-- Returns a line about its failures for each arm that has some.
function record.failed(failures)
  local of, lines = {}, {}
  for _, failure in ipairs(failures) do
    local arm = of[failure.arm]
    if not arm then
      arm = { first = failure, n = 0 }
      of[failure.arm], lines[#lines + 1] = arm, arm
    end
    arm.n = arm.n + 1
  end
  for i, arm in ipairs(lines) do
    local first = arm.first
    lines[i] = ("%s: %d %s failed, first %s, %d tokens: %s"):format(first.arm, arm.n, arm.n == 1 and "run" or "runs",
      first.prompt, first.tokens, first.error)
  end
  return lines
end

-- The speed of a run relative to plain decoding; nil without plain decoding.
function record.speedup(run, plain)
  return plain and run.stats.tokens_per_second / plain.stats.tokens_per_second
end

return record
