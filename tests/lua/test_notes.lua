-- What policies say of their own: tree:tag, seq:log and seq:clock, in the box, in traces, results and reports.
local lu = require "luaunit"
local dt = require "dt"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")

-- After 1 the draft model expects 2 or 3, the target takes 2, then 6.
local DRAFT = { [1] = { [2] = 0.5, [3] = 0.25 } }
local TARGET = { [1] = 2, [2] = 6, [6] = 1 }

local HEAD = [[
local policy = require "dt.policy"
local P = policy.define { name = "notes", uses = { %s } }
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
]]

local function run(body, uses, more)
  local request = { policy = "notes.lua", source = HEAD:format(uses or "") .. body .. "\nreturn P", prompt = " 1",
                    tokens = 6, ignore_eos = true }
  local pair <close> = probe.fake(DRAFT, TARGET)
  local result, failure = pair:generate(probe.with(request, more or {}))
  lu.assertNil(failure and failure.message)
  return result
end

-- 2 is a guess and 49 a copy below it, while there is room; 3 has no tag.
local GROW = [[
function P:draft(tree)
  if tree:token(0) ~= 1 or tree:depth_room() < 2 then return end
  tree:draft_step(0)
  tree:branch(0, 2)
  tree:tag(1, "guess")
  tree:tag(tree:add(1, 49, -1), "copy")
  tree:tag(tree:add(2, 48, -1), "copy")
end
]]

TestNotes = {}

function TestNotes.test_tags_are_counted_with_what_came_true()
  local tags = run(GROW).stats.tags
  local times = tags.guess.verified
  lu.assertTrue(times >= 2)
  lu.assertEquals(tags.guess, { verified = times, decided = times, expected = times * 0.5, accepted = times })
  lu.assertEquals({ tags.copy.verified, tags.copy.decided, tags.copy.accepted }, { 2 * times, times, 0 })
  lu.assertAlmostEquals(tags.copy.expected, times * math.exp(-1), 1e-5)
end

function TestNotes.test_what_is_not_verified_is_not_counted()
  local tags = run(GROW .. "local grow = P.draft function P:draft(t) grow(self, t) t:keep(1) end").stats.tags
  lu.assertTrue(tags.guess.verified > 0)
  lu.assertEquals(tags.copy.verified, 0)
end

function TestNotes.test_a_tree_that_is_dropped_leaves_no_tags()
  local tags = run(GROW .. [[
    function P:step(seq)
      self:draft(seq.tree)
      seq:rollback()
      seq.tree:draft_step(0)
      seq.tree:branch(0, 2)
      seq:verify_tree()
      seq:commit()
    end]]).stats.tags
  lu.assertEquals({ tags.guess.verified, tags.copy.verified }, { 0, 0 })
end

function TestNotes.test_the_last_tag_of_a_node_counts()
  local tags = run(GROW .. "local grow = P.draft function P:draft(t) grow(self, t) "
    .. "if t:size() > 0 then t:tag(1, 'other') end end").stats.tags
  lu.assertEquals(tags.guess.verified, 0)
  lu.assertTrue(tags.other.verified > 0)
end

function TestNotes.test_numbers_are_described()
  local log = run([[
    function P:init(seq) seq:log("at", 4) end
    function P:observe(tree, out) tree.seq:log("at", tree.seq:length()) end]]).stats.log
  lu.assertEquals({ log.at.n, log.at.least, log.at.most, log.at.last }, { 7, 2, 7, 7 })
  lu.assertAlmostEquals(log.at.mean, (4 + 2 + 3 + 4 + 5 + 6 + 7) / 7, 1e-12)
end

function TestNotes.test_who_says_nothing_has_none()
  local stats = run("function P:draft() end").stats
  lu.assertEquals({ next(stats.tags), next(stats.log) }, {})
end

function TestNotes.test_traces_tell_them()
  local file = os.tmpname()
  run(GROW .. "function P:observe(t, out) if out.drafted > 0 then t.seq:log('x.y', 1) t.seq:log('x.y', 0.5) end end",
      "", { trace = file })
  local tags, logs = {}, {}
  for line in io.lines(file) do
    local entry = assert(dt.json.decode(line))
    for _, node in ipairs(#logs == 0 and entry.nodes or {}) do tags[#tags + 1] = node.tag or "-" end
    if entry.nodes then logs[#logs + 1] = entry.log and entry.log["x.y"] or false end
  end
  lu.assertEquals(tags, { "-", "guess", "-", "copy", "copy" })
  lu.assertEquals({ logs[1], logs[2] }, { 0.5, false })
  local drawing = require "dt.trace_trees".draw(require "dt.trace".read(file).iterations, false)[1]
  lu.assertStrContains(drawing, "tag: copy")
  os.remove(file)
end

function TestNotes.test_what_is_wrong_is_told_in_one_line()
  run(GROW .. [[
    function P:observe(tree, out)
      if out.drafted == 0 then return end
      raises("tree:tag: this step has committed already", tree.tag, tree, 1, "late")
    end
    local grow = P.draft
    function P:draft(tree)
      grow(self, tree)
      if tree:size() == 0 then return end
      local seq = tree.seq
      local name = ": a name of 1 to 32 letters, digits, '_', '-' or '.' is expected"
      for _, bad in ipairs { "", "a b", 'a"', ("a"):rep(33), 7, false } do
        raises("tree:tag" .. name, tree.tag, tree, 1, bad)
        raises("seq:log" .. name, seq.log, seq, bad, 1)
      end
      tree:tag(1, ("a"):rep(32))
      raises("tree:tag: u: the root cannot have a tag, since it is not a guess", tree.tag, tree, 0, "x")
      raises("tree:tag: u: there is no node 9 (the tree has 0..4)", tree.tag, tree, 9, "x")
      for _, bad in ipairs { "1", 1 / 0, 0 / 0, false } do
        raises("seq:log: a finite number is expected as the value", seq.log, seq, "x", bad)
      end
      for i = 1, 16 do seq:log("x" .. i, i) end
      raises("seq:log: a run has at most 16 names of numbers", seq.log, seq, "x17", 1)
      for i = 1, 13 do tree:tag(1, "x" .. i) end
      raises("tree:tag: a run has at most 16 tags", tree.tag, tree, 1, "x14")
      self.draft = grow
    end]])
end

TestClock = {}

function TestClock.test_it_is_what_the_table_says_of_the_passes_so_far()
  local pair <close> = probe.fake(DRAFT, TARGET)
  local costs, times = dt.measure_costs(pair)
  local source = HEAD:format "costs = true" .. [[
    function P:draft(tree)
      if tree:depth_room() < 1 then return end
      tree:draft_step(0)
      tree:branch(0, 2)
    end
    function P:observe(tree, out)
      local seq, costs = tree.seq, self.costs
      local before = seq:length() - out.committed
      local ms = costs:target(1 + out.drafted, before) + (out.drafted > 0 and costs:first(before) or 0)
      local now = seq:clock()
      local took = now - (self.before or 0)
      if math.abs(took - ms) > 1e-9 then error(("%g, not %g"):format(took, ms)) end
      self.before = now
      seq:log("clock", now)
    end
    return P]]
  local request = { policy = "notes.lua", source = source, prompt = " 1", tokens = 9, costs = "table" }
  local first, again = assert(pair:generate(request)), assert(pair:generate(request))
  lu.assertTrue(first.stats.log.clock.last > 0 and times ~= nil and costs ~= nil)
  lu.assertEquals(first.stats.log.clock, again.stats.log.clock)
end

function TestClock.test_a_policy_that_did_not_declare_costs_is_told()
  run [[
    function P:draft(t)
      raises("seq:clock: this policy did not declare uses = {costs = true}", t.seq.clock, t.seq)
    end]]
end

os.exit(lu.LuaUnit.run())
