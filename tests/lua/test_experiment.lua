-- dt.experiment on a scripted pair.
local lu = require "luaunit"
local core = require "dt.core"
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"

-- The machine's word on each run: what core.usage gives, by turns before and after it; quiet unless a test says else.
local QUIET = { wall = 0, cpu = 0, steal = 0, switches = 0 }
local BUSY = { wall = 1000, cpu = 1000, steal = 0, switches = 300 }
local function machine(usages)
  local asked = 0
  function core.usage()
    asked = asked + 1
    return asked % 2 == 0 and usages[asked // 2] or QUIET
  end
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- A folder of its own for each test.
local Folder = {}

function Folder:setUp()
  self.folder = os.tmpname()
  os.remove(self.folder)
  os.execute("mkdir -p " .. self.folder .. "/texts")
end

function Folder:tearDown() os.execute("rm -r " .. self.folder) end

function Folder:file(name, text)
  local path = self.folder .. "/" .. name
  write(path, text)
  return path
end

local function suite()
  return setmetatable({ setUp = Folder.setUp, tearDown = Folder.tearDown }, { __index = Folder })
end

TestPrompts = suite()

function TestPrompts:test_files_are_named_by_folder_and_name()
  local files = { self:file("texts/01.txt", "one\n"), self:file("texts/b", "two") }
  local list = assert(experiment.prompts { files = files })
  lu.assertEquals(list, { { set = "texts", name = "texts/01", text = "one\n" },
                          { set = "texts", name = "texts/b", text = "two" } })
end

function TestPrompts:test_sets_are_lines_with_id_and_prompt()
  local path = self:file("task.jsonl", '{"id": 1, "prompt": "a\\nb", "answer": 3}\n{"prompt": "c", "id": "x"}')
  lu.assertEquals(assert(experiment.prompts { sets = { path } }), {
    { set = "task", name = "task/1", text = "a\nb" }, { set = "task", name = "task/x", text = "c" } })
end

function TestPrompts:test_texts_are_cut_to_characters_not_bytes()
  local path = self:file("a.txt", "äöü€x")
  local function cut(n) return assert(experiment.prompts { files = { path }, chars = n })[1].text end
  lu.assertEquals(cut(1), "ä")
  lu.assertEquals(cut(4), "äöü€")
  lu.assertEquals(cut(5), "äöü€x")
  lu.assertEquals(cut(800), "äöü€x")
end

function TestPrompts:test_what_is_no_prompt_is_named_with_its_place()
  local function refuses(pattern, t)
    local list, message = experiment.prompts(t)
    lu.assertNil(list)
    lu.assertStrContains(message, pattern)
    lu.assertNotStrContains(message, "\n")
  end
  refuses("/b.txt: invalid UTF-8 at byte 3", { files = { self:file("b.txt", "ab\xFFcd") } })
  refuses("/b.txt: empty", { files = { self:file("b.txt", "") } })
  refuses("No such file", { files = { self.folder .. "/none.txt" } })
  refuses("directory", { files = { self.folder } })
  local good = '{"id": 1, "prompt": "a"}\n'
  refuses("/s.jsonl:2: expected {", { sets = { self:file("s.jsonl", good .. "hello\n") } })
  refuses("/s.jsonl:2: expected {", { sets = { self:file("s.jsonl", good .. '{"id": 2}\n') } })
  refuses("/s.jsonl:2: empty", { sets = { self:file("s.jsonl", good .. '{"id": 2, "prompt": ""}\n') } })
  local cut_off = good .. '{"id": 2, "prompt": "a\xC3"}\n'
  refuses("/s.jsonl:2: invalid UTF-8 at byte 23", { sets = { self:file("s.jsonl", cut_off) } })
  refuses("s.jsonl:2: the prompt is named s/1, as is ", { sets = { self:file("s.jsonl", good .. good) } })
  lu.assertErrorMsgContains("unknown key 'file'", experiment.prompts, { file = "x" })
end

TestExperiment = suite()

function TestExperiment:setUp()
  machine {}
  Folder.setUp(self)
  self.pair = assert(dt.fake { vocab = 20 })
  self.out = self.folder .. "/out.jsonl"
end

function TestExperiment:spec(changes)
  local t = {
    name = "test", pair = self.pair, out = self.out, tokens = { 5, 9 }, repeats = 2,
    arms = { { policy = "linear", params = { K = 2 } }, { label = "deep", policy = "linear", params = { K = 4 },
             axes = { depth = 4 } } },
    prompts = { { set = "s", name = "s/1", text = " 1 2 3" },
                { set = "s", name = "s/2", text = " 4 5", axes = { n = 2 } } },
  }
  for key, value in pairs(changes or {}) do t[key] = value end
  t.out = t.out or nil -- false: in memory
  return t
end

local function keys(runs)
  local list = {}
  for i, run in ipairs(runs) do
    list[i] = ("%s %s %d %d %s"):format(run.arm, run.prompt, run.tokens, run["repeat"], run.stats.output_hash)
  end
  table.sort(list)
  return list
end

function TestExperiment:test_the_prompt_pass_is_made_once_per_prompt_and_warm_up_runs_are_short()
  local lengths, prefixes, real = {}, 0, self.pair
  local counted = setmetatable({}, { __index = function(_, key) return real[key] end })
  function counted.policy(_, t) return real:policy(t) end
  function counted.identity() return real:identity() end
  function counted.forget() real:forget() end
  function counted.prefix(_, text)
    prefixes = prefixes + 1
    return real:prefix(text)
  end
  function counted.generate(_, t)
    lengths[#lengths + 1] = t.tokens
    return real:generate(t)
  end
  local arms = { { policy = "linear" } }
  assert(experiment.run(self:spec { pair = counted, arms = arms, tokens = { 40 }, repeats = 1, warmup = 1 }))
  lu.assertEquals(lengths, { 32, 32, 40, 40, 40, 40 })
  lu.assertEquals(prefixes, 2)
end

function TestExperiment:test_each_arm_and_plain_decoding_runs_each_prompt_length_and_repeat_once()
  local done = assert(experiment.run(self:spec()))
  lu.assertEquals(#done.runs, 3 * 2 * 2 * 2)
  local seen = {}
  for _, run in ipairs(done.runs) do
    local key = ("%s|%s|%d|%d"):format(run.arm, run.prompt, run.tokens, run["repeat"])
    lu.assertNil(seen[key])
    seen[key] = run
    lu.assertEquals(run.finish_reason, "length")
    lu.assertTrue(run.stats.shared_prefix)
  end
  local run = seen["deep|s/2|9|2"]
  lu.assertEquals(run.policy, "linear")
  lu.assertEquals(run.params, { K = 4 })
  lu.assertEquals(run.axes, { depth = 4, n = 2 })
  lu.assertEquals(run.prompt_tokens, 2)
  lu.assertNotNil(seen["linear K=2|s/1|5|1"])
  lu.assertEquals(seen["ar|s/1|9|1"].stats.drafted, 0)
  lu.assertEquals(keys(assert(record.read(self.out)).runs), keys(done.runs))
end

function TestExperiment:test_no_arm_always_comes_first()
  local done = assert(experiment.run(self:spec { out = false }))
  local first = {}
  for i = 1, #done.runs, 3 do first[done.runs[i].arm] = true end
  lu.assertEquals(first, { ar = true, ["linear K=2"] = true, deep = true })
end

function TestExperiment:test_a_stopped_experiment_goes_on_where_it_was()
  local whole = assert(experiment.run(self:spec { out = false }))
  assert(experiment.run(self:spec()))
  local text = read(self.out)
  local lines = {}
  for line in text:gmatch "[^\n]*\n" do lines[#lines + 1] = line end
  for _, stop in ipairs { 0, 1, 2, 7, #lines - 1, #lines } do
    local kept = table.concat(lines, "", 1, stop)
    write(self.out, kept .. (lines[stop + 1] or ""):sub(1, 30))
    local done = assert(experiment.run(self:spec()))
    lu.assertEquals(keys(done.runs), keys(whole.runs))
    lu.assertEquals(read(self.out):sub(1, #kept), kept)
    lu.assertEquals(keys(assert(record.read(self.out)).runs), keys(whole.runs))
  end
end

function TestExperiment:test_arms_may_be_added_to_a_file()
  assert(experiment.run(self:spec()))
  local done = assert(experiment.run(self:spec { arms = { { policy = "linear", params = { K = 7 } } } }))
  lu.assertEquals(#done.runs, (3 + 1) * 8)
end

local TWO_OF_TWO = { shard = "2/2" }

function TestExperiment:test_a_shard_runs_what_it_is_dealt_and_plain_decoding()
  local whole, arms = assert(experiment.run(self:spec { out = false })), {}
  for number = 1, 2 do
    local done = assert(experiment.run(self:spec { out = false, shard = number .. "/2" }))
    lu.assertEquals(done.head.shard, number .. "/2")
    lu.assertEquals(done.head.settings, { ar = 8, ["linear K=2"] = 8, deep = 8 })
    lu.assertEquals(#done.runs, 2 * 8)
    for _, run in ipairs(done.runs) do arms[run.arm] = (arms[run.arm] or 0) + 1 end
  end
  lu.assertEquals(arms, { ar = 16, ["linear K=2"] = 8, deep = 8 })
  lu.assertNil(whole.head.shard or whole.head.settings)
end

function TestExperiment:test_a_shards_file_is_its_own_and_of_these_settings()
  assert(experiment.run(self:spec(TWO_OF_TWO)))
  lu.assertEquals(#assert(experiment.run(self:spec(TWO_OF_TWO))).runs, 16) -- nothing is left
  self:refuses('made with shard = "2/2", not "1/2"', { shard = "1/2" })
  self:refuses("made with runs of deep = 8, not null",
    { shard = "2/2", arms = { { policy = "linear", params = { K = 3 } } } })
  self:refuses("out.jsonl: the file of shard 2/2: give the same --shard to continue it", {})
end

-- The first lines of a complete file, as another node would have written them.
function TestExperiment:test_plain_decoding_is_run_again_on_another_node()
  local whole = assert(experiment.run(self:spec()))
  for _, stop in ipairs { 2, 7, 24 } do
    local lines = {}
    for line in read(self.out):gmatch "[^\n]*\n" do lines[#lines + 1] = line:gsub('"node": "[^"]*"', '"node": "n0"') end
    write(self.out, table.concat(lines, "", 1, stop + 1))
    local done = assert(experiment.run(self:spec()))
    local plain, others, here = record.baseline(done.runs), 0, 0
    for _, run in ipairs(done.runs) do
      others = others + (run.arm ~= "ar" and 1 or 0)
      if run.node ~= "n0" then
        here = here + 1
        lu.assertEquals(plain(run).node, run.node)
      end
    end
    lu.assertEquals(others, 2 * 8) -- each once
    lu.assertEquals(here == 0, stop == 24) -- nothing left: plain decoding neither
    lu.assertEquals(#assert(record.read(self.out)).runs, #done.runs)
    write(self.out, table.concat(lines))
  end
  lu.assertEquals(#whole.runs, 24)
end

function TestExperiment:refuses(pattern, changes)
  local done, message = experiment.run(self:spec(changes))
  lu.assertNil(done)
  lu.assertStrContains(message, pattern)
  lu.assertNotStrContains(message, "\n")
end

function TestExperiment:test_a_file_of_other_conditions_is_refused()
  assert(experiment.run(self:spec()))
  local before = read(self.out)
  self:refuses("out.jsonl: made with repeats = 2, not 3", { repeats = 3 })
  self:refuses("made with tokens = [5, 9], not [5]", { tokens = { 5 } })
  self:refuses('made with experiment = "test", not "other"', { name = "other" })
  self:refuses("made with ignore_eos = null, not true", { generate = { ignore_eos = true } })
  self:refuses("made with chars = null, not 800", { protocol = { chars = 800 } })
  self:refuses("made with texts = ", { prompts = { { set = "s", name = "s/1", text = " 1 2" },
                                                   { set = "s", name = "s/2", text = " 4 5" } } })
  self:refuses("made with draft = ", { pair = assert(dt.fake { vocab = 20, draft = false }), arms = {} })
  lu.assertEquals(read(self.out), before)
end

-- Texts with equal FNV-1a 64 hashes are different texts: those of policies and of prompts.
function TestExperiment:test_twins_do_not_share_an_experiment()
  local function twin(name) return read((arg[0]:match "^(.*/)" or "./") .. "../data/twins/" .. name) end
  local path = self:file("p.lua", twin "keeper.lua")
  assert(experiment.run(self:spec { arms = { { policy = path } } }))
  write(path, twin "thief.lua")
  self:refuses("its runs of twin used another version of that policy (source ", { arms = { { policy = path } } })
  local function of(name)
    return experiment.open(self:spec { out = self:file("texts.jsonl", ""), arms = {},
                                       prompts = { { set = "twins", name = "twins/1", text = twin(name) } } })
  end
  local texts = assert(of "tide.txt").head.protocol.texts
  lu.assertNotEquals(assert(of "rain.txt").head.protocol.texts, texts)
  lu.assertEquals(assert(of "tide.txt").head.protocol.texts, texts)
end

-- A file of an earlier dtrun, whose hashes were shorter.
function TestExperiment:test_a_file_of_an_earlier_program_is_refused_with_what_to_do()
  assert(experiment.run(self:spec()))
  write(self.out, (read(self.out):gsub('"build": "%x+"', '"build": "0123456789abcdef"', 1)))
  self:refuses('out.jsonl: made with build = "0123456789abcdef", not "', {})
  self:refuses(": start again with --out and another file", {})
end

function TestExperiment:test_a_disturbed_run_is_made_again_and_what_stays_disturbed_is_told()
  local spec = self:spec { arms = { { policy = "linear" } }, tokens = { 5 }, repeats = 3, warmup = 0 }
  machine { BUSY, QUIET, QUIET, BUSY, BUSY, QUIET, BUSY, BUSY, BUSY }
  local done = assert(experiment.run(spec))
  local tries, disturbed = {}, {}
  for i, run in ipairs(done.runs) do
    tries[i], disturbed[i] = run.tries, run.disturbed or false
  end
  lu.assertEquals(tries, { 2, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1 })
  local why = "it was preempted 300 times in 1.00 s"
  lu.assertEquals(disturbed, { false, false, false, why, false, false, false, false, false, false, false, false })
  lu.assertEquals(record.disturbance(assert(record.read(self.out)).runs), "The machine was busy: 3 of 12 runs were "
    .. "disturbed and repeated; 1 were disturbed even in the last try (one: " .. why
    .. "), and 0 of these count because there are no others.")
  table.remove(done.runs, 4)
  lu.assertStrContains(record.disturbance(done.runs), "2 of 11 runs were disturbed and repeated; "
    .. "repeating succeeded for all of them")
  lu.assertNil(record.disturbance { done.runs[2] })
end

function TestExperiment.test_of_disturbed_results_the_fastest_stays()
  local speeds, made = { 3, 5, 4 }, 0
  machine { BUSY, BUSY, BUSY }
  local result, tries = experiment.measured({ backend = "cpu:avx2" }, false, function()
    made = made + 1
    return { stats = { tokens_per_second = speeds[made] } }
  end)
  lu.assertEquals({ result.stats.tokens_per_second, tries }, { 5, 3 })
end

-- What suffix gave before would be the answer of its next run on the same text.
function TestExperiment:test_nothing_is_remembered_from_run_to_run()
  local arms = { { policy = "suffix" } }
  local done = assert(experiment.run(self:spec { arms = arms, tokens = { 60 }, repeats = 3, warmup = 1 }))
  local first = {}
  for _, run in ipairs(done.runs) do
    local key = run.arm .. run.prompt
    first[key] = first[key] or run.stats.drafted
    lu.assertEquals(run.stats.drafted, first[key])
  end
end

function TestExperiment:test_a_policy_that_changes_while_it_runs_ends_the_experiment()
  local text, real = read((arg[0]:match "^(.*/)" or "./") .. "../../policies/linear.lua"), self.pair
  local path = self:file("changing.lua", text)
  local pair = setmetatable({}, { __index = function(_, key) return real[key] end })
  for _, name in ipairs { "policy", "identity", "prefix", "forget" } do
    pair[name] = function(_, t) return real[name](real, t) end
  end
  function pair.generate(_, t)
    if t.policy == path then write(path, text .. "-- edited") end
    return real:generate(t)
  end
  self:refuses("changing: the policy's file has changed during the experiment: start again with --out",
               { pair = pair, arms = { { policy = path } }, warmup = 0 })
  for _, run in ipairs(assert(record.read(self.out)).runs) do lu.assertEquals(run.arm, "ar") end
end

function TestExperiment:test_bad_arms_are_refused_before_anything_runs()
  self:refuses("linear: no parameter 'X' (it has: K)", { arms = { { policy = "linear", params = { X = 1 } } } })
  self:refuses("linear: K = 0 is out of range: 1..256", { arms = { { policy = "linear", params = { K = 0 } } } })
  self:refuses("no policy 'nothing'", { arms = { { policy = "nothing" } } })
  self:refuses("two arms are called 'linear'", { arms = { { policy = "linear" }, { policy = "linear" } } })
  self:refuses("two arms are called 'ar'", { arms = { { policy = "ar" } } })
  self:refuses("no prompts", { prompts = {} })
  lu.assertNil(io.open(self.out))
end

function TestExperiment:test_a_run_that_fails_is_named_and_what_was_finished_stays()
  local long = { { set = "s", name = "s/1", text = " 1" }, { set = "s", name = "s/2", text = (" 1"):rep(600) } }
  self:refuses("s/2: the prompt has 600 tokens, but in a context of 512", { prompts = long })
  lu.assertEquals(#assert(record.read(self.out)).runs, 12)
  local broken = self:file("broken.lua", [[
    local P = require "dt.policy".define { name = "broken", uses = { draft = false } }
    function P:draft(tree) if tree.seq:length() > 6 then error "enough" end end
    return P]])
  self:refuses("broken, s/1, 5 tokens: ", { out = false, arms = { { policy = broken } }, warmup = 0 })
end

function TestExperiment:test_a_policys_error_ends_its_run_only_and_is_not_repeated_unless_asked()
  local text = [[
    local P = require "dt.policy".define { name = "broken", uses = { draft = false } }
    function P:draft() error "enough" end
    return P]]
  local path = self:file("broken.lua", text)
  local spec = self:spec { arms = { { policy = path }, { policy = "linear" } }, go_on = true }
  local done = assert(experiment.run(spec))
  lu.assertEquals({ #done.runs, #done.failures }, { 16, 8 })
  lu.assertEquals(done.failures[1].arm, "broken")
  lu.assertStrContains(done.failures[1].error, "enough")
  lu.assertEquals(#record.failed(done.failures), 1)
  lu.assertStrContains(record.failed(done.failures)[1], ("broken: %d runs failed, first s/"):format(#done.failures))
  local before = read(self.out)
  lu.assertEquals(#assert(experiment.run(spec)).failures, #done.failures)
  lu.assertEquals(read(self.out), before)
  spec.retry = true
  lu.assertEquals(#assert(experiment.run(spec)).failures, #done.failures)
  lu.assertTrue(#read(self.out) > #before) -- tried again, and failed again
  spec.retry = nil
  lu.assertEquals(#assert(record.read(self.out)).failures, #done.failures) -- the last counts
  write(path, (text:gsub('error "enough"', ""))) -- after the policy is fixed, it is run
  local mended = assert(experiment.run(self:spec { arms = { { policy = path }, { policy = "linear" } } }))
  lu.assertEquals({ #mended.runs, #mended.failures }, { 24, 0 })
  lu.assertEquals(#assert(record.read(self.out)).failures, 0)
end

function TestExperiment:test_an_output_that_differs_from_the_others_is_refused_loudly()
  assert(experiment.run(self:spec()))
  local text = read(self.out)
  local hash = text:match '"output_hash": "(%x+)"'
  write(self.out, (text:gsub(hash, ("0"):rep(16), 1)))
  self:refuses("changed the output of s/", {})
end

function TestExperiment:test_a_full_disk_is_said() self:refuses("/dev/full: No space left", { out = "/dev/full" }) end

os.exit(lu.LuaUnit.run())
