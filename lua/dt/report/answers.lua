-- Experiments with conversations in the form of published benchmarks: files of answers that the scripts of Spec-Bench
-- read, and a table of the numbers that those scripts print.
--
--   local paths = answers.write(record.read "spec_bench.jsonl", "spec_bench")
--   -- { "spec_bench/run_1/MODEL-ar.jsonl", "spec_bench/run_1/MODEL-rate.jsonl" }
--   local table = answers.table(record.read "spec_bench.jsonl")   -- { columns =, rows = }; nil: no conversations
--
-- Each line of a file is the answer to a question:
--   question_id, category      as in the benchmark's file
--   model_id                   the target and the arm
--   answer_id, tstamp          a digest of the line's place; when the answer ended, in seconds since 1970
--   choices                    a list of one object: index (0); lists with an item for each turn: turns (texts),
--                              decoding_steps (target passes after the prompt), new_tokens (end-of-text included) and
--                              wall_time (seconds, prompt pass included); accept_lengths, the tokens committed in each
--                              pass of all turns
--   acceptance_lengths         accept_lengths again, under the name that SPEED-Bench's scripts give to it
local core = require "dt.core"
local json = require "dt.json"
local record = require "dt.record"
local shell = require "dt.shell"
local statistics = require "dt.statistics"

local answers = {}

-- The model's name in files, without folder and ending.
local function model_of(head) return head.target:gsub("/+$", ""):match "[^/]*$":gsub("%.gguf$", "") end

local function is_answer(run) return run.question ~= nil and run.turns ~= nil and run.turns[1] ~= nil end

local function sum(list)
  local total = 0
  for _, x in ipairs(list) do total = total + x end
  return total
end

-- The tokens committed in each pass of a run.
local function lengths_of(run)
  local list = {}
  for _, turn in ipairs(run.turns) do table.move(turn.lengths, 1, #turn.lengths, #list + 1, list) end
  return list
end

-- The tokens per second of a run, and its number of tokens.
local function speed_of(run)
  local ms = 0
  for _, turn in ipairs(run.turns) do ms = ms + turn.ms end
  return sum(lengths_of(run)) / ms * 1000
end

local function line_of(run, model)
  local lengths = lengths_of(run)
  local choice = { index = 0, turns = {}, decoding_steps = {}, new_tokens = {}, wall_time = {},
                   accept_lengths = lengths }
  for i, turn in ipairs(run.turns) do
    choice.turns[i], choice.decoding_steps[i] = turn.text, #turn.lengths
    choice.new_tokens[i], choice.wall_time[i] = sum(turn.lengths), turn.ms / 1000
  end
  return json.encode { question_id = run.question.id, category = run.question.category, model_id = model,
                       answer_id = core.digest({ model, run.prompt, tostring(run["repeat"]) }):sub(1, 22),
                       tstamp = run.turns[#run.turns].ended, choices = { choice }, acceptance_lengths = lengths }
end

local function file_name(text) return (text:gsub("[^%w._-]", "-")) end

local function write(path, lines)
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local ok, failed = file:write(table.concat(lines, "\n"), "\n")
  local closed, unclosed = file:close()
  if ok and closed then return true end
  return nil, ("%s: %s"):format(path, failed or unclosed)
end

-- Writes the answers of an experiment into a folder that exists: run_N/MODEL-ARM.jsonl for each arm and repeat, with a
-- line for each question, in the order of the questions. Merged files have plain decoding once for each shard; the
-- first counts. Returns the paths, or nil and a message.
function answers.write(file, folder)
  local model, of, paths, seen = model_of(file.head), {}, {}, {}
  for _, run in ipairs(file.runs) do
    if is_answer(run) and not seen[record.key(run)] then
      local name = file_name(("%s-%s"):format(model, run.arm))
      local path = ("%s/run_%d/%s.jsonl"):format(folder, run["repeat"], name)
      if not of[path] then of[path], paths[#paths + 1] = {}, path end
      seen[record.key(run)] = true
      table.insert(of[path], line_of(run, name))
    end
  end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local status, message = shell("mkdir -p -- %s", (path:match "^(.*)/"))
    local ok = status == 0
    if ok then ok, message = write(path, of[path]) end
    if not ok then return nil, message end
  end
  return paths
end

-- The mean number of tokens committed in a pass: of all passes, or the mean of the questions' means.
local function mean_length(runs, by_question)
  local list = {}
  for _, run in ipairs(runs) do
    local lengths = lengths_of(run)
    if by_question then lengths = { sum(lengths) / #lengths } end
    table.move(lengths, 1, #lengths, #list + 1, list)
  end
  return statistics.mean(list)
end

-- Returns the mean of the questions' speeds, and their number. A question that was repeated counts once, with its mean.
local function mean_speed(runs)
  local of, list = {}, {}
  for _, run in ipairs(runs) do
    of[run.prompt] = of[run.prompt] or {}
    table.insert(of[run.prompt], speed_of(run))
  end
  for _, speeds in pairs(of) do list[#list + 1] = statistics.mean(speeds) end
  table.sort(list) -- so that the sum does not depend on the order of pairs
  return statistics.mean(list), #list
end

-- The runs by set and arm, of[set][arm] = list, and the names of sets and of arms, plain decoding first. The set
-- "overall" has all runs.
local function grouped(runs)
  local of, sets, arms, known = { overall = {} }, {}, {}, {}
  for _, run in ipairs(runs) do
    if is_answer(run) then
      if not of[run.set] then of[run.set], sets[#sets + 1] = {}, run.set end
      if not known[run.arm] then
        known[run.arm] = true
        table.insert(arms, run.arm == record.BASELINE and 1 or #arms + 1, run.arm)
      end
      for _, set in ipairs { run.set, "overall" } do
        of[set][run.arm] = of[set][run.arm] or {}
        table.insert(of[set][run.arm], run)
      end
    end
  end
  sets[#sets + 1] = "overall"
  return of, sets, arms
end

-- The numbers that the benchmark's scripts print, for each set of questions and arm: the mean of the questions' speeds
-- in tokens per second, the mean number of tokens per target pass, and the ratio of the mean speed to that of plain
-- decoding. Spec-Bench's script encodes the texts of plain decoding again and counts one token fewer for each turn, so
-- that its speedups are slightly higher. nil: there are no conversations.
function answers.table(file)
  local of, sets, arms = grouped(record.counting(file.runs))
  if not arms[1] then return nil end
  local t = { columns = { "questions", "arm", "number", "tokens/s", "tokens per pass", "speedup" }, rows = {} }
  for _, set in ipairs(sets) do
    local plain = of[set][record.BASELINE] and mean_speed(of[set][record.BASELINE])
    for _, arm in ipairs(arms) do
      local runs = of[set][arm]
      if runs then
        local speed, number = mean_speed(runs)
        t.rows[#t.rows + 1] = { set, arm, ("%d"):format(number), ("%.2f"):format(speed),
          ("%.3f"):format(mean_length(runs, file.head.protocol.by_question)),
          plain and ("%.3fx"):format(speed / plain) or "-" }
      end
    end
  end
  return t
end

return answers
