-- Questions of benchmarks, conversations as runs, and their answers in Spec-Bench's form, on the bundled pair.
local answers = require "dt.answers"
local dt = require "dt"
local experiment = require "dt.experiment"
local lu = require "luaunit"
local papers = require "dt.papers"
local questions = require "dt.questions"
local record = require "dt.record"

local json = dt.json
local SPEC, SPEED = papers.spec_bench.questions, papers.speed_bench.questions

local function write(path, lines)
  local file = assert(io.open(path, "wb"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
end

local function lines_of(path)
  local list = {}
  for line in io.lines(path) do list[#list + 1] = json.decode(line) end
  return list
end

local function folder_of(self)
  self.folder = os.tmpname()
  os.remove(self.folder)
  os.execute("mkdir " .. self.folder)
end

local function no_folder(self) os.execute("rm -r " .. self.folder) end

-- ---- reading -------------------------------------------------------------------------------------------------------

TestQuestions = { setUp = folder_of, tearDown = no_folder }

function TestQuestions:read(lines, benchmark, n)
  local path = self.folder .. "/" .. (benchmark or SPEC).file
  write(path, lines)
  return questions.read(self.folder, benchmark or SPEC, n), questions.read(path, benchmark or SPEC, n)
end

function TestQuestions:test_spec_benchs_form()
  local list, same = self:read {
    '{"question_id": 81, "category": "writing", "turns": ["One?", "Two?"], "reference": ["x", "y"]}', "",
    '{"question_id": 481, "category": "rag", "turns": ["Three?"]}' }
  lu.assertEquals(list, {
    { set = "mt_bench", name = "writing/81", turns = { "One?", "Two?" }, question = { id = 81, category = "writing" } },
    { set = "rag", name = "rag/481", turns = { "Three?" }, question = { id = 481, category = "rag" } } })
  lu.assertEquals(same, list)
end

function TestQuestions:test_speed_benchs_forms()
  local list = self:read({
    '{"question_id": "a0", "category": "coding", "sub_category": "c", "turns": ["One?"], "multiturn": false}',
    '{"question_id": "a1", "category": "low_entropy", "messages": [{"role": "user", "content": "One?"}, '
      .. '{"role": "user", "content": "Two?"}], "difficulty": null}' }, SPEED)
  lu.assertEquals(list, {
    { set = "coding", name = "coding/a0", turns = { "One?" }, question = { id = "a0", category = "coding" } },
    { set = "low_entropy", name = "low_entropy/a1", turns = { "One?", "Two?" },
      question = { id = "a1", category = "low_entropy" } } })
end

function TestQuestions.test_both_benchmarks_have_their_categories()
  local function count(categories)
    local n, rows = 0, {}
    for _, row in pairs(categories) do n, rows[row] = n + 1, true end
    local names = {}
    for row in pairs(rows) do names[#names + 1] = row end
    table.sort(names)
    return n, table.concat(names, " ")
  end
  local n, rows = count(SPEC.categories)
  lu.assertEquals({ n, rows }, { 13, "math_reasoning mt_bench qa rag summarization translation" })
  lu.assertEquals(count(SPEED.categories), 11 + 3)
end

function TestQuestions:test_some_of_each_category_are_spread_over_the_file()
  local lines = {}
  for i = 1, 10 do
    lines[i] = ('{"question_id": %d, "category": "%s", "turns": ["x"]}'):format(i, i < 9 and "qa" or "rag")
  end
  local function ids(n)
    local list = {}
    for i, each in ipairs((self:read(lines, SPEC, n))) do list[i] = each.question.id end
    return list
  end
  lu.assertEquals(ids(1), { 1, 9 })
  lu.assertEquals(ids(2), { 1, 5, 9, 10 })
  lu.assertEquals(ids(3), { 1, 4, 7, 9, 10 })
  lu.assertEquals(#ids(100), 10)
end

function TestQuestions:test_mistakes_are_reported_with_their_line()
  local function refuses(line, text)
    local path = self.folder .. "/question.jsonl"
    write(path, { '{"question_id": 1, "category": "qa", "turns": ["x"]}', line })
    local list, message = questions.read(path, SPEC)
    lu.assertNil(list)
    lu.assertEquals(message, path .. ":2: " .. text)
  end
  refuses('{"question_id": 2', "JSON: expected ',' or '}'")
  refuses("7", "expected an object")
  refuses('{"category": "qa", "turns": ["x"]}', '"question_id" is not an integer or a text')
  refuses('{"question_id": 1.5, "category": "qa", "turns": ["x"]}', '"question_id" is not an integer or a text')
  refuses('{"question_id": 2, "category": "poetry", "turns": ["x"]}', '"category" is "poetry", expected one of coding, '
    .. "extraction, humanities, math, math_reasoning, qa, rag, reasoning, roleplay, stem, summarization, translation, "
    .. "writing")
  refuses('{"question_id": 2, "category": "qa", "prompt": "x"}', 'no "turns": expected a list of one or more texts')
  refuses('{"question_id": 2, "category": "qa", "turns": []}', 'no "turns": expected a list of one or more texts')
  refuses('{"question_id": 2, "category": "qa", "turns": ["x", " "]}', "turn 2 is not a text or a message of the user")
  refuses('{"question_id": 2, "category": "qa", "messages": [{"role": "system", "content": "x"}]}',
    "turn 1 is not a text or a message of the user")
  refuses('{"question_id": 2, "category": "qa", "turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED"]}',
    "turn 1 is a placeholder: run the benchmark's own prepare script first")
  refuses('{"question_id": 1, "category": "qa", "turns": ["y"]}', "repeats the question of line 1")
end

function TestQuestions:test_what_is_not_there()
  local _, message = questions.read(self.folder, SPEC)
  lu.assertEquals(message, ("--data %s: expected a folder with question.jsonl, or such a file"):format(self.folder))
  write(self.folder .. "/question.jsonl", {})
  _, message = questions.read(self.folder, SPEC)
  lu.assertEquals(message, self.folder .. "/question.jsonl: no questions, expected JSON lines")
end

function TestQuestions:test_questions_without_room_for_an_answer_are_left_out()
  local pair = assert(dt.load())
  local list = self:read { '{"question_id": 1, "category": "qa", "turns": ["x"]}',
    ('{"question_id": 2, "category": "qa", "turns": ["%s"]}'):format(("a b "):rep(40)) }
  local fitting, left_out = questions.that_fit(pair, list, { template = "chatml" }, 60)
  lu.assertEquals({ fitting, left_out }, { { list[1] }, { "qa/2" } })
  local none, message, kind = questions.that_fit(pair, list, {}, 60)
  lu.assertEquals({ none, kind }, { nil, "input" })
  lu.assertStrContains(message, "has no chat template")
  pair:close()
end

-- ---- conversations -------------------------------------------------------------------------------------------------

local TURNS = { "Who are you?", "And now?" }
local LIST = {
  { set = "mt_bench", name = "writing/81", turns = TURNS, question = { id = 81, category = "writing" } },
  { set = "qa", name = "qa/321", turns = { "Why?" }, question = { id = 321, category = "qa" } },
}

TestConversations = { setUp = function(self)
  folder_of(self)
  self.pair = assert(dt.load())
end, tearDown = function(self)
  self.pair:close()
  no_folder(self)
end }

function TestConversations:run(more)
  local t = { name = "paper spec_bench", pair = self.pair, arms = { { policy = "linear", params = { K = 2 } } },
              prompts = LIST, tokens = { 6 }, warmup = 0, chat = { template = "chatml" },
              out = self.folder .. "/x.jsonl" }
  for key, value in pairs(more or {}) do t[key] = value end
  return experiment.run(t)
end

local function trim(text) return text:match "^%s*(.-)%s*$" end

-- ChatML by hand: the second prompt contains the first answer.
function TestConversations:test_the_next_prompt_has_the_answer_to_the_turn_before()
  local done = assert(self:run())
  local text, answers_of, prompt_tokens = "", {}, 0
  for i, turn in ipairs(TURNS) do
    text = ("%s<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"):format(text, turn)
    local result = assert(self.pair:generate { policy = "ar", prompt = text, tokens = 6, stop = { "<|im_end|>" } })
    answers_of[i], prompt_tokens = trim(result.text), prompt_tokens + result.prompt_tokens
    text = ("%s%s<|im_end|>\n"):format(text, answers_of[i])
  end
  lu.assertEquals(#done.runs, 4)
  for _, run in ipairs(done.runs) do
    if run.prompt == "writing/81" then
      lu.assertEquals({ run.turns[1].text, run.turns[2].text }, answers_of)
      lu.assertEquals(run.prompt_tokens, prompt_tokens)
    else
      lu.assertEquals(#run.turns, 1)
    end
  end
end

function TestConversations:test_a_run_has_the_numbers_of_all_its_turns()
  for _, run in ipairs(assert(self:run()).runs) do
    local passes, tokens, ms = 0, 0, 0
    for _, turn in ipairs(run.turns) do
      passes, ms = passes + #turn.lengths, ms + turn.ms
      for _, n in ipairs(turn.lengths) do tokens = tokens + n end
    end
    lu.assertEquals(run.stats.iterations, passes)
    lu.assertAlmostEquals(run.stats.tokens_per_iteration, tokens / passes, 1e-9)
    lu.assertAlmostEquals(run.stats.tokens_per_second, tokens / ms * 1000, 1e-6 * tokens / ms * 1000)
    lu.assertEquals(tokens, 6 * #run.turns)
    if run.arm == "ar" then lu.assertEquals(passes, tokens) end
  end
end

function TestConversations:test_a_turn_that_does_not_fit_ends_the_conversation()
  local long = { set = "mt_bench", name = "writing/82", turns = { "Why?", ("a b "):rep(2000) },
                 question = { id = 82, category = "writing" } }
  local runs = assert(self:run { prompts = { long } }).runs
  lu.assertEquals({ #runs, #runs[1].turns, #runs[2].turns }, { 2, 1, 1 })
end

function TestConversations:test_answers_in_spec_benchs_form()
  local done = assert(self:run { repeats = 2 })
  local paths = assert(answers.write(done, self.folder))
  for i, name in ipairs { "run_1/mini-target-ar", "run_1/mini-target-linear-K-2", "run_2/mini-target-ar",
                          "run_2/mini-target-linear-K-2" } do
    lu.assertEquals(paths[i], ("%s/%s.jsonl"):format(self.folder, name))
  end
  lu.assertEquals(#paths, 4)
  local plain, linear = lines_of(paths[1]), lines_of(paths[2])
  lu.assertEquals(#linear, 2)
  for i, line in ipairs(linear) do
    local choice, question = line.choices[1], LIST[i].question
    lu.assertEquals({ line.question_id, line.category, line.model_id },
      { question.id, question.category, "mini-target-linear-K-2" })
    lu.assertEquals({ #line.choices, choice.index }, { 1, 0 })
    local total, passes, tokens = 0, 0, 0
    for _, n in ipairs(choice.accept_lengths) do total = total + n end
    for k = 1, #LIST[i].turns do
      passes, tokens = passes + choice.decoding_steps[k], tokens + choice.new_tokens[k]
      lu.assertTrue(choice.wall_time[k] > 0)
    end
    lu.assertEquals({ passes, tokens }, { #choice.accept_lengths, total })
    lu.assertEquals(line.acceptance_lengths, choice.accept_lengths)
    lu.assertEquals(choice.turns, plain[i].choices[1].turns)
    lu.assertTrue(math.abs(line.tstamp - os.time()) < 600)
  end
end

-- speed.py's numbers, by hand: the mean of the questions' speeds, the mean of all lengths, the ratio of mean speeds.
function TestConversations.test_the_table_has_the_numbers_of_the_benchmark()
  local function run(set, arm, turns)
    return { arm = arm, set = set, prompt = set .. #turns, tokens = 9, ["repeat"] = 1, turns = turns,
             question = { id = 1, category = set } }
  end
  local function turn(ms, ...) return { text = "x", ms = ms, lengths = { ... }, ended = 1 } end
  local file = { head = { protocol = {} }, runs = {
    run("a", "linear", { turn(100, 2, 2), turn(100, 1, 3) }), run("a", "ar", { turn(400, 1, 1, 1, 1, 1, 1, 1, 1) }),
    run("b", "ar", { turn(100, 1, 1) }), run("b", "linear", { turn(50, 1, 1) }),
  } }
  lu.assertEquals(answers.table(file).rows, {
    { "a", "ar", "1", "20.00", "1.000", "1.000x" }, { "a", "linear", "1", "40.00", "2.000", "2.000x" },
    { "b", "ar", "1", "20.00", "1.000", "1.000x" }, { "b", "linear", "1", "40.00", "1.000", "2.000x" },
    { "overall", "ar", "2", "20.00", "1.000", "1.000x" }, { "overall", "linear", "2", "40.00", "1.667", "2.000x" },
  })
  file.head.protocol.by_question = true
  lu.assertEquals(answers.table(file).rows[6][5], "1.500")
  -- repeats of a question count once
  file.runs[5] = run("a", "linear", { turn(100, 1, 1), turn(100, 1, 1) })
  file.runs[5]["repeat"] = 2
  lu.assertEquals({ table.unpack(answers.table(file).rows[6], 2, 4) }, { "linear", "2", "35.00" })
  lu.assertNil(answers.table { head = file.head, runs = {} })
end

function TestConversations:test_a_stopped_experiment_goes_on()
  local whole = assert(self:run())
  local path, lines = self.folder .. "/x.jsonl", {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  write(path, table.move(lines, 1, 3, 1, {}))
  lu.assertEquals(#assert(self:run()).runs, #whole.runs)
  local after = {}
  for line in io.lines(path) do after[#after + 1] = line end
  lu.assertEquals(table.move(after, 1, 3, 1, {}), table.move(lines, 1, 3, 1, {}))
  lines[3] = lines[3]:gsub('"lengths": %[', '"lengths": ["x", ')
  write(path, lines)
  local _, message = record.read(path)
  lu.assertEquals(message, path .. ":3: not a line of an experiment: turns is not a list of objects with text, "
    .. "lengths, ms and ended")
end

os.exit(lu.LuaUnit.run())
