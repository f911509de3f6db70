-- dt.record: experiment files.
local lu = require "luaunit"
local core = require "dt.core"
local json = require "dt.json"
local record = require "dt.record"
local shell = require "dt.shell"

local function head(changes)
  local t = { experiment = "sweep", protocol = { tokens = { 10 }, warmup = 1 }, machine = "a machine", backend = "fake",
              threads = 1, target = "t", draft = "d", version = "0" }
  for key, value in pairs(changes or {}) do t[key] = value end
  return t
end

local function run(changes)
  local t = { arm = "linear K=3", policy = "linear", params = { K = 3 }, axes = {}, set = "texts", prompt = "texts/01",
              tokens = 10, ["repeat"] = 1, finish_reason = "length", prompt_tokens = 4,
              stats = { tokens_per_second = 50.0, output_hash = "00", iterations = 5 } }
  for key, value in pairs(changes or {}) do t[key] = value end
  return t
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

TestRecord = {}

function TestRecord:setUp() self.path = os.tmpname() os.remove(self.path) end

function TestRecord:tearDown() os.remove(self.path) end

function TestRecord:test_what_was_added_is_read_again()
  local file = assert(record.open(self.path, head()))
  lu.assertTrue(file:append(run()))
  lu.assertTrue(file:append(run { arm = "ar", policy = "ar", params = {} }))
  local again = assert(record.read(self.path))
  lu.assertEquals(again.head.protocol, { tokens = { 10 }, warmup = 1 })
  lu.assertEquals(#again.runs, 2)
  lu.assertEquals(again.runs[1].params, { K = 3 })
  lu.assertEquals(again.runs[2].arm, "ar")
end

function TestRecord:test_plain_decoding_may_be_run_again_on_another_node_and_nothing_else_may()
  local plain = { arm = "ar", policy = "ar", params = {}, node = "n1" }
  local file = assert(record.open(self.path, head()))
  lu.assertTrue(file:append(run(plain)))
  plain.node = "n2"
  lu.assertTrue(file:append(run(plain)))
  lu.assertEquals(#assert(record.read(self.path)).runs, 2)
  lu.assertTrue(file:append(run(plain)))
  lu.assertStrContains(select(2, record.read(self.path)), "repeats the run of line 3 (ar, ")
  os.remove(self.path)
  file = assert(record.open(self.path, head()))
  for number = 1, 2 do lu.assertTrue(file:append(run { node = "n" .. number })) end
  lu.assertStrContains(select(2, record.read(self.path)), "repeats the run of line 2 (linear K=3, ")
end

function TestRecord.test_without_a_path_runs_are_kept_in_memory()
  local file = assert(record.open(nil, head()))
  lu.assertTrue(file:append(run()))
  lu.assertEquals(#file.runs, 1)
end

function TestRecord:test_a_torn_last_line_is_not_read_and_is_cut_when_the_file_is_gone_on_with()
  local file = assert(record.open(self.path, head()))
  assert(file:append(run()))
  local whole = read(self.path)
  for _, torn in ipairs { "{", '{"schema": "dtrun.run/1", "arm": "li', whole:match "\n(.*)\n$" } do
    write(self.path, whole .. torn)
    lu.assertEquals(#assert(record.read(self.path)).runs, 1)
    lu.assertEquals(#assert(record.open(self.path, head())).runs, 1)
    lu.assertEquals(read(self.path), whole)
  end
end

-- A look at the rest of the file from each of its bytes would take days.
function TestRecord:test_what_is_torn_is_passed_at_once_however_long_it_is()
  write(self.path, json.encode(head { schema = "dtrun.runs/1" }) .. "\n" .. ("x"):rep(1 << 24))
  lu.assertEquals(assert(record.read(self.path)).runs, {})
end

function TestRecord:test_a_torn_head_is_an_empty_file()
  write(self.path, '{"schema": "dtrun.ru')
  local file = assert(record.open(self.path, head()))
  assert(file:append(run()))
  lu.assertEquals(#assert(record.read(self.path)).runs, 1)
end

function TestRecord:test_a_malformed_line_is_named_with_file_and_line()
  local file = assert(record.open(self.path, head()))
  assert(file:append(run()))
  local whole = read(self.path)
  local function refuses(line, pattern)
    write(self.path, whole .. line .. "\n" .. whole:match "\n(.*\n)$")
    for _, how in ipairs { record.read, function(path) return record.open(path, head()) end } do
      local ok, message = how(self.path)
      lu.assertNil(ok)
      lu.assertEquals(message:sub(1, #self.path + 3), self.path .. ":3:")
      lu.assertStrContains(message, pattern)
    end
    lu.assertEquals(#read(self.path), #whole + #line + 1 + #whole:match "\n(.*\n)$") -- nothing was lost
  end
  refuses("", "expected a value")
  refuses("hello", "expected a value")
  refuses("[1]", "its schema is not dtrun.run/1")
  refuses('{"schema": "dtrun.run/2"}', "its schema is not dtrun.run/1")
  refuses('{"schema": "dtrun.run/1"}', "it has no arm")
  refuses(whole:match "\n(.*)\n$":gsub('"tokens": 10', '"tokens": "10"'), "tokens is not an integer")
  refuses(whole:match "\n(.*)\n$":gsub('"output_hash"', '"hash"'), "it has no stats.output_hash")
  refuses("false", "its schema is not dtrun.run/1")
  refuses("null", "its schema is not dtrun.run/1")
  refuses(whole:match "\n(.*)\n$", "repeats the run of line 2 (linear K=3, texts/01, 10 tokens, repeat 1)")
  write(self.path, whole:match "\n(.*\n)$")
  lu.assertStrContains(select(2, record.read(self.path)), ":1: not a line of an experiment: its schema is not")
end

-- The changes turn the line into one of another run, so that no run is there twice.
function TestRecord:test_valid_json_of_wrong_types_is_named_with_its_key()
  local file = assert(record.open(self.path, head()))
  local whole = read(self.path)
  assert(file:append(run()))
  local function changed(key, value)
    local changes = run { ["repeat"] = 2 }
    local at, last = changes, key
    for name, rest in key:gmatch "([^.]+)%.()" do
      at[name] = at[name] or {}
      at, last = at[name], key:sub(rest)
    end
    at[last], changes.schema = value, "dtrun.run/1"
    write(self.path, whole .. json.encode(changes) .. "\n")
    return record.read(self.path)
  end
  local list, tables = json.array { 1 }, json.array { {} }
  for key, values in pairs {
    arm = { 1, true, list }, params = { 1, list }, ["params.K"] = { list, {}, 1e16 }, axes = { "x", tables },
    ["axes.chars"] = { list }, ["axes.reasoning"] = { 1 }, ["axes.sampling"] = { 1 },
    ["axes.study"] = { true }, tokens = { 0, 1.5, 10 ^ 16 | 0 },
    ["repeat"] = { 0, "1" }, prompt_tokens = { -1 }, stats = { 5, list }, preset = { 1 }, probability = { 1, tables },
    ["stats.tokens_per_second"] = { 0, -1, "fast", 1e-10, 1.1e15, 1e307 }, ["stats.iterations"] = { 0, 1.5 },
    ["stats.ttft_ms"] = { "1", 1e307, -1e307, list }, ["stats.tokens_per_iteration"] = { 0, {} },
    ["stats.accepted_by_depth"] = { 1, list, tables, { a = 1 } }, ["stats.time_ms"] = { 1, list },
    ["stats.peak_memory_bytes"] = { 1, list }, ["stats.tags"] = { 1, list, { copy = 1 }, { copy = { verified = 1 } } },
    ["stats.log"] = { 1, list, { gain = 1 }, { gain = { n = 0, mean = 1 } } },
  } do
    for _, value in ipairs(values) do
      local ok, message = changed(key, value)
      lu.assertNil(ok, key)
      lu.assertStrContains(message, ":2: not a line of an experiment: " .. (key:gsub("^(params)%.K", "%1")
        :gsub("^(axes)%.chars", "%1")))
    end
  end
  for key, value in pairs { tokens = 10 ^ 15 | 0, ["stats.tokens_per_second"] = 1e-9, ["params.K"] = 1e15 } do
    lu.assertNotNil(changed(key, value), key)
  end
  lu.assertNotNil(changed("stats.tokens_per_second", 1e15))
  lu.assertStrContains(select(2, changed("stats.time_ms", { prompt = 1 })), "it has no stats.time_ms.commit")
  lu.assertStrContains(select(2, changed("stats.peak_memory_bytes", { host = 0, weights = 0, caches = 0 })),
    "stats.peak_memory_bytes.host is not a number from 1e-9")
  for key, value in pairs { protocol = list, threads = 0, draft = 1 } do
    local bad = head { [key] = value }
    bad.schema = "dtrun.runs/1"
    write(self.path, json.encode(bad) .. "\n")
    lu.assertStrContains(select(2, record.read(self.path)), ":1: not a line of an experiment: " .. key .. " is not")
  end
end

function TestRecord:test_a_file_that_another_process_writes_is_refused()
  assert(record.open(self.path, head()))
  assert(record.open(self.path, head())) -- this one may
  local script = os.tmpname()
  write(script, ("local ok, message = require 'dt.core'.lock(%q) print(ok, message)"):format(self.path))
  local _, exe = shell "readlink /proc/$PPID/exe"
  local _, said = shell("%s run %s", (exe:gsub("\n$", "")), script)
  lu.assertEquals(said, "nil\t" .. self.path
    .. ": another process is writing this file: wait until it ends, or give another file\n")
  os.remove(script)
end

function TestRecord:test_a_file_of_other_conditions_is_refused_with_what_differs()
  assert(record.open(self.path, head()))
  local function refuses(changes, pattern)
    local ok, message = record.open(self.path, head(changes))
    lu.assertNil(ok)
    lu.assertStrContains(message, self.path .. ": " .. pattern)
  end
  refuses({ threads = 2 }, "made with threads = 1, not 2")
  refuses({ machine = "another" }, 'made with machine = "a machine", not "another"')
  refuses({ target = "other" }, 'made with target = "t", not "other"')
  refuses({ protocol = { tokens = { 10 }, warmup = 2 } }, "made with warmup = 1, not 2")
  refuses({ protocol = { tokens = { 10, 20 }, warmup = 1 } }, "made with tokens = [10], not [10, 20]")
  refuses({ protocol = { tokens = { 10 } } }, "made with warmup = 1, not null")
end

function TestRecord:test_a_missing_or_empty_file_and_one_that_cannot_be_read_say_so()
  lu.assertStrContains(select(2, record.read(self.path)), "No such file")
  write(self.path, "")
  lu.assertStrContains(select(2, record.read(self.path)), "the file is empty, expected an experiment")
  local ok, message = record.read "/"
  lu.assertNil(ok)
  lu.assertStrContains(message, "directory")
end

function TestRecord.test_a_full_disk_is_said_and_leaves_no_half_line()
  local ok, message = record.open("/dev/full", head())
  lu.assertNil(ok)
  lu.assertStrContains(message, "/dev/full: No space left on device")
end

function TestRecord.test_a_run_that_lacks_something_is_the_programs_mistake()
  local file = assert(record.open(nil, head()))
  lu.assertTrue(file:append(run()))
  lu.assertErrorMsgContains("the head: it has no machine", record.open, nil, { experiment = "x", protocol = {},
    backend = "b", threads = 1, target = "t", version = "0" })
end

function TestRecord:test_a_run_that_lacks_something_is_not_written()
  local file = assert(record.open(self.path, head()))
  local bad = run()
  bad.set = nil
  lu.assertErrorMsgContains("a run: it has no set", file.append, file, bad)
  lu.assertEquals(#assert(record.read(self.path)).runs, 0)
end

function TestRecord.test_a_run_is_compared_with_plain_decoding_of_its_text_length_and_repeat()
  local function plain(changes)
    changes.arm = "ar"
    return run(changes)
  end
  local short, long, again = plain {}, plain { tokens = 20 }, plain { ["repeat"] = 2 }
  local baseline = record.baseline { run(), short, long, again }
  lu.assertIs(baseline(run()), short)
  lu.assertIs(baseline(run { tokens = 20 }), long)
  lu.assertIs(baseline(run { tokens = 20, ["repeat"] = 2 }), long) -- plain decoding once
  lu.assertIs(baseline(run { ["repeat"] = 2 }), again)
  lu.assertNil(baseline(run { prompt = "texts/02" }))
  short.stats.tokens_per_second = 40
  lu.assertEquals(record.speedup(run(), short), 1.25)
  lu.assertNil(record.speedup(run(), nil))
end

function TestRecord.test_disturbed_runs_count_where_a_text_has_no_others()
  local quiet, disturbed = run {}, run { ["repeat"] = 2, disturbed = "x", tries = 3 }
  local alone, other = run { tokens = 20, disturbed = "x", tries = 3 }, run { arm = "ar" }
  lu.assertEquals(record.counting { quiet, disturbed, alone, other }, { quiet, alone, other })
  lu.assertStrContains(record.disturbance { quiet, disturbed, alone, other },
    "2 of 4 runs were disturbed and repeated; 2 were disturbed even in the last try "
    .. "(one: x), and 1 of these count because there are no others.")
end

function TestRecord:test_truncate_cuts_and_says_what_it_cannot()
  write(self.path, "abcdef")
  lu.assertTrue(core.truncate(self.path, 3))
  lu.assertEquals(read(self.path), "abc")
  lu.assertStrContains(select(2, core.truncate(self.path .. "/no", 3)), "Not a directory")
end

os.exit(lu.LuaUnit.run())
