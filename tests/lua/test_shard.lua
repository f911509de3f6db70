-- dt.shard: which part of an experiment a process runs. dt.record.place: where it does.
local lu = require "luaunit"
local place = require "dt.record.place"
local shard = require "dt.shard"

local function environment(t) return function(name) return t[name] and tostring(t[name]) end end

local NOTHING = environment {}

TestShard = {}

local function refuses(pattern, ...)
  local part, message = shard.chosen(...)
  lu.assertNil(part)
  lu.assertStrContains(message, pattern)
  lu.assertNotStrContains(message, "\n")
end

function TestShard.test_shards_are_numbered_from_1_to_n()
  for _, text in ipairs { "1/4", "4/4", "1/1000000", "1000000/1000000" } do
    local part = assert(shard.chosen(text, "o.jsonl", NOTHING))
    lu.assertEquals(part.name, text)
    lu.assertEquals(("%d/%d"):format(part.number, part.of), text)
  end
  for _, text in ipairs { "0/4", "5/4", "0/0", "1/0", "-1/4", "1/1000001", "1/99999999999999999999", "", "/", "1", "1/",
                          "/4", "1/4/4", "1/4x", " 1/4", "1.0/4", "1e0/4", "0x1/4", "one/4" } do
    refuses(("--shard: '%s' is not a shard: expected i/n with i from 1 to n and n at most 1000000"):format(text), text,
      "o.jsonl", NOTHING)
  end
end

function TestShard.test_one_of_one_is_all_of_it()
  for _, part in ipairs { assert(shard.chosen("1/1", nil, NOTHING)), assert(shard.chosen(nil, nil, NOTHING)),
                          assert(shard.chosen("1/1", nil, environment { SLURM_ARRAY_TASK_ID = 3 })) } do
    lu.assertNil(part.name)
    lu.assertEquals(part:file "o.jsonl", "o.jsonl")
    lu.assertNil(part:file(nil))
  end
end

function TestShard.test_a_shard_without_a_file_is_refused()
  refuses("shard 3/4 needs --out FILE", "3/4", nil, NOTHING)
end

local function task(id, count, min, step)
  return environment { SLURM_ARRAY_TASK_ID = id, SLURM_ARRAY_TASK_COUNT = count, SLURM_ARRAY_TASK_MIN = min,
                       SLURM_ARRAY_TASK_STEP = step }
end

function TestShard.test_the_tasks_of_an_array_are_shards_wherever_their_ids_begin()
  local function part(...) return assert(shard.chosen(nil, "o.jsonl", task(...))).name end
  lu.assertEquals(part(0, 4, 0, 1), "1/4")
  lu.assertEquals(part(3, 4, 0, 1), "4/4")
  lu.assertEquals(part(1, 4, 1), "1/4")
  lu.assertEquals(part(17, 3, 17, 1), "1/3")
  lu.assertEquals(part(19, 3, 17, 1), "3/3")
  lu.assertEquals(part(9, 4, 3, 2), "4/4")
end

function TestShard.test_an_array_that_says_nothing_of_shards_is_refused()
  for _, getenv in ipairs { task(4, 3, 1, 1), task(0, 3, 1, 1), task(4, 3, 1, 2), task(1, nil, 1, 1), task(1, 3),
                            task("x", 3, 1, 1), task("", 3, 1, 1), task(2, 3, 1, 0), task(1, 1000001, 1, 1),
                            task(2, 0, 1, 1) } do
    refuses("expected an array of tasks at equal distances", nil, "o.jsonl", getenv)
  end
  refuses("SLURM_ARRAY_TASK_ID = 7 is the only task of its array", nil, "o.jsonl", task(7, 1, 7, 1))
  lu.assertEquals(assert(shard.chosen("2/3", "o.jsonl", task(7, 1, 7, 1))).name, "2/3")
end

function TestShard.test_no_two_shards_write_the_same_file()
  local function file(text, path) return assert(shard.chosen(text, path, NOTHING)):file(path) end
  lu.assertEquals(file("3/4", "a/sweep.jsonl"), "a/sweep-3of4.jsonl")
  lu.assertEquals(file("1/12", "sweep"), "sweep-1of12")
  lu.assertEquals(file("1/2", "a.jsonl/b"), "a.jsonl/b-1of2")
  lu.assertEquals(file("1/2", ".jsonl"), ".jsonl-1of2")
  lu.assertEquals(file("1/2", "a/.jsonl"), "a/.jsonl-1of2")
end

local function settings_of(n)
  local settings = { ar = 1 }
  for i = 1, n do settings[("fixed_tree D=%d"):format(i)] = 1 end
  return settings
end

function TestShard.test_each_setting_is_dealt_to_one_shard_and_shares_differ_by_one_at_most()
  for _, n in ipairs { 1, 2, 3, 4, 7, 450, 451 } do
    local counts, dealt = {}, 0
    for _, number in pairs(shard.deal(settings_of(450), n)) do
      counts[number], dealt = (counts[number] or 0) + 1, dealt + 1
    end
    lu.assertEquals(dealt, 450)
    for number = 1, math.min(n, 450) do
      lu.assertTrue(counts[number] == 450 // n or counts[number] == (450 + n - 1) // n)
    end
    lu.assertNil(counts[0] or counts[n + 1])
  end
end

-- Every process must deal alike, on whatever machine: a table of another history, and these very numbers.
function TestShard.test_who_is_dealt_what_follows_from_the_labels_alone()
  local other = {}
  for i = 60, 1, -1 do other[("fixed_tree D=%d"):format(i)] = 3 end
  lu.assertEquals(shard.deal(other, 5), shard.deal(settings_of(60), 5))
  lu.assertEquals(shard.deal(settings_of(6), 3), {
    ["fixed_tree D=1"] = 3, ["fixed_tree D=2"] = 1, ["fixed_tree D=3"] = 2, ["fixed_tree D=4"] = 1,
    ["fixed_tree D=5"] = 2, ["fixed_tree D=6"] = 3 })
end

function TestShard.test_neighbours_are_spread()
  local dealt, same = shard.deal(settings_of(400), 2), 0
  for i = 1, 399 do
    if dealt["fixed_tree D=" .. i] == dealt["fixed_tree D=" .. i + 1] then same = same + 1 end
  end
  lu.assertTrue(same > 120 and same < 280) -- neither alternating nor in blocks
end

function TestShard.test_plain_decoding_is_every_shards_own_that_has_a_setting()
  local settings = settings_of(2)
  for number = 1, 3 do
    local own = shard.own { shard = number .. "/3", settings = settings }
    lu.assertEquals(own.ar, number < 3 or nil)
  end
  lu.assertTrue(shard.own({}).anything)
end

TestPlace = {}

function TestPlace.test_a_run_says_where_it_was_made()
  local here = place.here(NOTHING)
  lu.assertStrMatches(here.node, "%S+")
  lu.assertStrMatches(here.cores, "[%d,-]+")
  lu.assertNil(here.job)
  here = place.here(environment { SLURMD_NODENAME = "n7", SLURM_JOB_ID = 15, SLURM_ARRAY_JOB_ID = 12,
                                  SLURM_ARRAY_TASK_ID = 3 })
  lu.assertEquals({ here.node, here.job }, { "n7", "12_3" })
  lu.assertEquals(place.here(environment { SLURM_JOB_ID = 15 }).job, "15")
end

local function run(arm, node, part)
  return { arm = arm, set = "s", prompt = "s/1", tokens = 5, ["repeat"] = 1, node = node, shard = part }
end

function TestPlace.test_what_cannot_be_compared_is_told()
  lu.assertNil(place.summary { run("ar", "n1"), run("linear", "n1") })
  lu.assertNil(place.summary { run("ar"), run("linear") })
  local one = place.summary { run("ar", "n1", "1/2"), run("a", "n1", "1/2"), run("ar", "n1", "2/2"),
                           run("b", "n1", "2/2") }
  lu.assertStrContains(one, "in 2 shards on 1 node (n1: 4).")
  lu.assertStrContains(one, "of the same text and length, if possible in the same shard;")
  lu.assertStrContains(one, "on one node at the same time")
  lu.assertNotStrContains(one, "compared with plain decoding of another")
  local two = place.summary { run("ar", "n1", "1/2"), run("a", "n2", "1/2"), run("ar", "n2", "2/2"),
                           run("b", "n2", "2/2") }
  lu.assertStrContains(two, "in 2 shards on 2 nodes (n1: 1, n2: 3).")
  lu.assertStrContains(two, "if possible in the same shard and node;")
  lu.assertStrContains(place.summary { run("ar", "n1"), run("ar", "n2") }, "if possible in the same node;")
  lu.assertStrContains(two, "may have run on different nodes")
  lu.assertStrContains(two, "1 of 4 runs are compared with plain decoding of another node")
end

os.exit(lu.LuaUnit.run())
