-- dt.merge: one experiment of the files of its shards.
local lu = require "luaunit"
local merge = require "dt.merge"
local record = require "dt.record"
local shard = require "dt.shard"
local summary = require "dt.report.summary"

local SETTINGS = { ar = 2, ["linear K=1"] = 2, ["linear K=2"] = 2, ["linear K=3"] = 2, ["linear K=4"] = 2 }

local function copy(t, changes)
  local new = {}
  for _, from in ipairs { t, changes or {} } do
    for key, value in pairs(from) do new[key] = value end
  end
  return new
end

local function head(number, of, changes)
  return copy({ schema = "dtrun.runs/1", experiment = "sweep", protocol = { tokens = { 10 }, repeats = 1, prompts = 2 },
                machine = "a machine, 8 CPUs", backend = "cpu", threads = 8, target = "/n/t", draft = "/n/d",
                version = "0", commit = "c", build = "b0", target_hash = "t0", draft_hash = "d0",
                began = "2026-01-0" .. number, shard = ("%d/%d"):format(number, of), settings = SETTINGS }, changes)
end

local function run(arm, text, speed, changes)
  return copy({ schema = "dtrun.run/1", arm = arm, policy = arm:match "%a+", source = "s0", params = {}, axes = {},
                set = "s", prompt = "s/" .. text, tokens = 10, ["repeat"] = 1, finish_reason = "length",
                prompt_tokens = 4, node = "n1",
                stats = { tokens_per_second = speed, output_hash = "h" .. text, iterations = 5 } }, changes)
end

-- What shard i of n writes, each on a machine that is i times as fast.
local function file(number, of, changes)
  local h = head(number, of, changes)
  local own, runs = shard.own(h), {}
  for _, arm in ipairs { "ar", "linear K=1", "linear K=2", "linear K=3", "linear K=4" } do
    for text = 1, 2 do
      if own[arm] then
        local speed = arm == "ar" and 10 or 10 + tonumber(arm:match "%d")
        runs[#runs + 1] = run(arm, text, speed * number + 0.0)
      end
    end
  end
  return { head = h, runs = runs }
end

local PATHS = { "s-1of2.jsonl", "s-2of2.jsonl", "s-3.jsonl", "s-4.jsonl" }

local function keys(runs, form)
  local list = {}
  for i, r in ipairs(runs) do list[i] = form:format(r.arm, r.prompt, r.shard) end
  table.sort(list)
  return list
end

TestMerge = {}

function TestMerge.test_the_runs_of_all_shards_are_there_once_and_say_of_which()
  local whole = assert(merge.together({ file(1, 2), file(2, 2) }, PATHS))
  lu.assertEquals(#whole.runs, 4 * 2 + 2 * 2)
  lu.assertNil(merge.missing(whole.shards, whole.runs))
  lu.assertNil(whole.head.shard or whole.head.settings)
  lu.assertEquals(whole.head.began, "2026-01-01")
  for _, r in ipairs(whole.runs) do lu.assertStrMatches(r.shard, "[12]/2") end
end

function TestMerge.test_a_run_that_is_there_twice_is_taken_once()
  local again = file(2, 2)
  for _, r in ipairs(again.runs) do r.stats = copy(r.stats, { tokens_per_second = 99.0 }) end
  local once = assert(merge.together({ file(1, 2), file(2, 2) }, PATHS))
  local twice = assert(merge.together({ file(1, 2), file(2, 2), again, file(1, 2) }, PATHS))
  lu.assertEquals(twice.runs, once.runs) -- the first of them
end

function TestMerge.test_what_failed_in_a_shard_is_kept_and_is_not_missing()
  local files, out = { file(1, 2), file(2, 2) }, os.tmpname()
  local last = table.remove(files[2].runs)
  files[2].failures = { { arm = last.arm, policy = "linear", source = "s0", set = last.set, prompt = last.prompt,
                          tokens = 10, ["repeat"] = 1, error = "enough", schema = "dtrun.failure/1" } }
  for _ = 1, 2 do
    lu.assertEquals({ merge.write(out, files, PATHS) }, { 11 })
    local merged = assert(record.read(out))
    lu.assertEquals({ #merged.failures, merged.failures[1].shard }, { 1, "2/2" })
  end
  files[2].runs[#files[2].runs + 1], files[2].failures = last, nil
  lu.assertEquals({ merge.write(out, files, PATHS) }, { 12 })
  lu.assertEquals(assert(record.read(out)).failures, {})
  os.remove(out)
end

function TestMerge.test_files_that_do_not_fit_are_refused_with_both_values()
  local function refuses(expected, changes, alter)
    local other = file(2, 2, changes)
    if alter then alter(other) end
    for order = 1, 2 do
      local files = order == 1 and { file(1, 2), other } or { other, file(1, 2) }
      local whole, message = merge.together(files, PATHS)
      lu.assertNil(whole)
      lu.assertEquals(message:sub(1, #PATHS[2]), PATHS[2])
      lu.assertNotStrContains(message, "\n")
      for _, text in ipairs(expected) do lu.assertStrContains(message, text) end
    end
  end
  refuses({ "has build", '"b0"', '"b1"', "only shards of one experiment" }, { build = "b1" })
  refuses({ "has commit", '"c"', '"x"' }, { commit = "x" })
  refuses({ "has version", '"0"', '"1"' }, { version = "1" })
  refuses({ "has target_hash", '"t0"', '"t1"' }, { target_hash = "t1" })
  refuses({ "has draft_hash", '"d0"', '"d1"' }, { draft_hash = "d1" })
  refuses({ "has machine", '"a machine, 8 CPUs"', '"a machine, 4 CPUs"' }, { machine = "a machine, 4 CPUs" })
  refuses({ "has backend", '"cpu"', '"cuda"' }, { backend = "cuda" })
  refuses({ "has threads", "8", "4" }, { threads = 4 })
  refuses({ "has experiment", '"sweep"', '"tune"' }, { experiment = "tune" })
  refuses({ "has repeats", "1", "3" }, { protocol = { tokens = { 10 }, repeats = 3, prompts = 2 } })
  refuses({ "has runs of linear K=9", "null", "2" }, { settings = copy(SETTINGS, { ["linear K=9"] = 2 }) })
  refuses({ "has shard", "1/2", "2/3" }, { shard = "2/3" })
  refuses({ "has the source of linear", "s0", "s1" }, nil, function(other)
    for _, r in ipairs(other.runs) do r.source = r.policy == "linear" and "s1" or r.source end
  end)
  refuses({ "changed the output of s/2, 10 tokens: hash", "h2", "h3" }, nil, function(other)
    for _, r in ipairs(other.runs) do
      if r.prompt == "s/2" then r.stats = copy(r.stats, { output_hash = "h3" }) end
    end
  end)
end

function TestMerge.test_what_is_no_shard_is_refused()
  for _, name in ipairs { "-", "0/2", "3/2", "1/1", "two" } do
    local whole, message = merge.together({ file(1, 2), copy(file(2, 2), { head = head(2, 2, { shard = name }) }) },
      PATHS)
    lu.assertNil(whole)
    lu.assertEquals(message, "s-2of2.jsonl: not a shard, expected files that were written with --shard")
  end
  local plain = file(1, 2)
  plain.head.shard, plain.head.settings = nil, nil
  lu.assertStrContains(select(2, merge.together({ plain }, PATHS)), "s-1of2.jsonl: not a shard")
end

function TestMerge.test_models_may_lie_elsewhere_where_hashes_say_that_they_are_the_same()
  lu.assertNotNil(merge.together({ file(1, 2), file(2, 2, { target = "/local/t", draft = "/local/d" }) }, PATHS))
  local function no_hash(number, changes)
    local f = file(number, 2, changes)
    f.head.target_hash = nil
    return f
  end
  local _, message = merge.together({ no_hash(1), no_hash(2, { target = "/local/t" }) }, PATHS)
  lu.assertStrContains(message, 'has target = "/local/t", but s-1of2.jsonl has "/n/t"')
end

function TestMerge.test_missing_shards_and_settings_are_named()
  local function missing(files)
    local whole = assert(merge.together(files, PATHS))
    return merge.missing(whole.shards, whole.runs)
  end
  lu.assertEquals(missing { file(2, 4), file(3, 4) }, "shard 1, 4 of 4 is missing")
  local torn = file(2, 2)
  local last = table.remove(torn.runs)
  lu.assertEquals(missing { file(1, 2), torn }, ("unfinished %s (1 of 2 runs, shard 2)"):format(last.arm))
  table.remove(torn.runs)
  lu.assertEquals(missing { torn }, ("shard 1 of 2 is missing; unfinished %s (0 of 2 runs, shard 2)"):format(last.arm))
  local bare = { head = head(1, 2), runs = {} }
  lu.assertStrMatches(missing { bare, file(2, 2) },
    "unfinished plain decoding %(0 of 2 runs, shard 1%), linear K=%d %(0 of 2 runs, shard 1%), linear .*")
  lu.assertNil(missing { file(1, 5), file(2, 5), file(3, 5), file(4, 5) }) -- nothing was dealt to the fifth
end

function TestMerge.test_many_settings_are_named_in_part()
  local settings = { ar = 1 }
  for i = 1, 40 do settings[("linear K=%02d"):format(i)] = 1 end
  local shards = { settings = settings, of = 2, given = { true, true } }
  local some = { run("ar", 1, 1.0, { shard = "1/2" }), run("ar", 1, 1.0, { shard = "2/2" }) }
  lu.assertStrMatches(merge.missing(shards, some), "unfinished linear K=01 .*linear K=12 %(.* and 28 more")
end

function TestMerge.test_a_speedup_is_to_plain_decoding_of_the_same_shard()
  local whole = assert(merge.together({ file(1, 2), file(2, 2) }, PATHS))
  local s = summary.new(whole)
  for k = 1, 4 do
    lu.assertAlmostEquals(s:describe("speedup", { arm = "linear K=" .. k }).mean, 1 + k / 10, 1e-12)
    lu.assertAlmostEquals(s:describe("against", { arm = "linear K=" .. k }, "linear K=1").mean, (10 + k) / 11, 1e-12)
  end
end

function TestMerge.test_arms_of_two_nodes_are_compared_by_their_speedups()
  local runs = { run("ar", 1, 10.0), run("ar", 1, 20.0, { node = "n2" }), run("a", 1, 20.0),
                 run("b", 1, 30.0, { node = "n2" }) }
  local s = summary.new { head = head(1, 2), runs = runs }
  lu.assertAlmostEquals(s:describe("against", { arm = "b" }, "a").mean, 1.5 / 2, 1e-12)
end

TestWrite = {}

function TestWrite:setUp() self.out = os.tmpname() os.remove(self.out) end
function TestWrite:tearDown() os.remove(self.out) end

function TestWrite:test_shards_may_be_added_one_after_the_other()
  local n, missing = merge.write(self.out, { file(1, 2) }, PATHS)
  lu.assertEquals({ n, missing }, { 6, "shard 2 of 2 is missing" })
  n, missing = merge.write(self.out, { file(2, 2) }, PATHS)
  lu.assertEquals({ n, missing }, { 12 })
  lu.assertEquals({ merge.write(self.out, { file(2, 2), file(1, 2) }, PATHS) }, { 12 })
  local runs = assert(record.read(self.out)).runs
  local whole = assert(merge.together({ file(1, 2), file(2, 2) }, PATHS))
  lu.assertEquals(keys(runs, "%s %s %s"), keys(whole.runs, "%s %s %s"))
end

function TestWrite:test_what_cannot_be_merged_leaves_no_file_and_changes_none()
  lu.assertNil(merge.write(self.out, { file(1, 2), file(2, 2, { build = "b1" }) }, PATHS))
  lu.assertNil(io.open(self.out))
  assert(merge.write(self.out, { file(1, 2) }, PATHS))
  local function refuses(pattern, changes, alter)
    local other = file(2, 2, changes)
    if alter then alter(other) end
    local ok, message = merge.write(self.out, { other }, PATHS)
    lu.assertNil(ok)
    lu.assertStrContains(message, pattern)
    lu.assertEquals(#assert(record.read(self.out)).runs, 6)
  end
  refuses('made with build = "b0", not "b1"', { build = "b1" })
  refuses("its runs of linear used another version of that policy (source s0, now s1)", nil, function(other)
    for _, r in ipairs(other.runs) do r.source = r.policy == "linear" and "s1" or r.source end
  end)
  refuses("changed the output of s/1", nil, function(other)
    for _, r in ipairs(other.runs) do r.stats = copy(r.stats, { output_hash = "x" }) end
  end)
end

function TestWrite:test_a_shard_is_not_written_over()
  local first = file(1, 2)
  local kept = assert(record.open(self.out, copy(first.head)))
  assert(kept:append_all(first.runs))
  local ok, message = merge.write(self.out, { file(2, 2) }, PATHS)
  lu.assertNil(ok)
  lu.assertStrContains(message, "the file of shard 1/2: ")
end

TestGrouped = {}

function TestGrouped.test_shards_are_one_experiment_of_a_report_and_others_their_own()
  local plain = { head = head(1, 2), runs = {} }
  plain.head.shard = nil
  local files, names = merge.grouped({ plain, file(1, 2), file(2, 2), plain, file(1, 2, { experiment = "tune" }) },
    { "a.jsonl", "n1/s-1of2.jsonl", "n2/s-2of2.jsonl", "b.jsonl", "n2/t-1of2.jsonl" })
  lu.assertEquals(names, { "a.jsonl", "n1/s.jsonl", "b.jsonl", "n2/t.jsonl" })
  lu.assertEquals(#files[2].runs, 12)
  lu.assertNil(files[2].missing)
  lu.assertEquals(files[4].missing, "shard 2 of 2 is missing")
  local none, message = merge.grouped({ file(1, 2), file(2, 2, { build = "b1" }) },
    { "s-1of2.jsonl", "s-2of2.jsonl" })
  lu.assertNil(none)
  lu.assertStrContains(message, "has build")
end

os.exit(lu.LuaUnit.run())
