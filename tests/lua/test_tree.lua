-- The policy's tree and seq, in the box, on a scripted pair: after any text the draft model says 1: 1/2, 2: 1/4, 3: 1/8
-- (after 2: 5 and 6, evenly); the target always says 1.
local lu = require "luaunit"
local dt = require "dt"

local PRELUDE = [[
local policy = require "dt.policy"
local P = policy.define { name = "test" }
local function eq(a, b, what)
  if a ~= b then error((what or "") .. " expected " .. tostring(b) .. ", got " .. tostring(a), 2) end
end
local function list(t, ...)
  eq(#t, select("#", ...), "length:")
  for i = 1, #t do eq(t[i], (select(i, ...))) end
end
local function near(a, b) if math.abs(a - b) > 1e-6 then error("expected " .. b .. ", got " .. a, 2) end end
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
]]

local options = {
  vocab = 9, context = 60,
  target = { [""] = { [1] = 0.9 } },
  draft = { [""] = { [1] = 0.5, [2] = 0.25, [3] = 0.125 }, ["2"] = { [5] = 0.5, [6] = 0.5 } },
}

-- Runs `body` as methods of P and gives the result; the policy's own assertions fail the test.
local function run(body, tokens, more, how)
  local o = {}
  for key, value in pairs(options) do o[key] = value end
  for key, value in pairs(more or {}) do o[key] = value end
  local pair <close> = assert(dt.fake(o))
  local request = { policy = "test.lua", source = PRELUDE .. body .. "\nreturn P", prompt = " 7 8",
                    tokens = tokens or 1 }
  for key, value in pairs(how or {}) do request[key] = value end
  local result, err = pair:generate(request)
  if not result then lu.fail(err.message) end
  return result
end

-- The same with the body of a draft, for the first iteration only.
local function draft(body, tokens)
  return run("function P:draft(tree) if self.drafted then return end self.drafted = true\n" .. body .. "\nend", tokens)
end

TestTree = {}

function TestTree.test_a_calibrated_draft_model()
  draft([[
    tree:calibrate(0.5)
    tree:draft_step(0)
    tree:branch(0, 2)
    near(tree:logp(1) - tree:logp(2), math.log(4))
    near(tree:q(1), 0.5) near(tree:q(2), 0.25)
    near(tree:confidence(0), tree:p(1))
    raises("tree:calibrate: scale must be a number, not string", tree.calibrate, tree, "1")
    raises("tree:calibrate: scale 11 is out of range: 0.1..10", tree.calibrate, tree, 11)
    raises("tree:calibrate: lean must be a number, not boolean", tree.calibrate, tree, 1, true)
    raises("tree:calibrate: lean -1.1 is out of range: -1..1", tree.calibrate, tree, 1, -1.1)
    raises("tree:calibrate: slope 0 is out of range: 0.1..10", tree.calibrate, tree, 1, 0, 0)
    raises("tree:calibrate: shift 11 is out of range: -10..10", tree.calibrate, tree, 1, nil, nil, 11)
    raises("tree:calibrate: share must be a number, not string", tree.calibrate, tree, 1, 0, 1, 0, "1")
    raises("tree:calibrate: share 1.1 is out of range: 0.01..1", tree.calibrate, tree, 1, 0, 1, 0, 1.1) ]], 9)
end

-- The likeliest of 0.5, 0.25, 0.125 and six that share the rest: its odds, 1, become e ^ 0.5.
function TestTree.test_odds_are_shifted_and_siblings_share_what_is_left()
  draft([[
    tree:calibrate(1, 0, 2, 0.5)
    tree:draft_step(0)
    tree:branch(0, 9)
    local odds, sum = math.exp(0.5), 0
    near(tree:p(1), odds / (1 + odds))
    near(tree:p(2), 0.5 / (1 + odds))
    for v = 1, 9 do sum = sum + tree:p(v) end
    near(sum, 1) ]], 10)
end

function TestTree.test_rank_is_the_candidate_that_a_token_is()
  draft([[
    eq(tree:rank(0, 1), nil)
    tree:draft_step(0)
    for i = 1, 9 do eq(tree:rank(0, (tree:candidate(0, i))), i) end
    eq(tree:rank(0, 9), 0) eq(tree:rank(0, -1), 0)
    raises("tree:rank: u: there is no node 1 (the tree has 0..0)", tree.rank, tree, 1, 1) ]], 9)
end

function TestTree.test_how_far_forced_text_is_looked_at()
  for _, case in ipairs { { 31, 61 }, { 32, 62, true }, { 32, 62 } } do -- of 63, 64 and 65 bytes
    local times, left, whole = table.unpack(case)
    local grammar = ('root ::= " 4"{%d} %s'):format(times, whole and '(" 4" | "\\n")' or '" " ("4" | "5")')
    run(("function P:draft(tree) if tree.seq:length() > 2 then return end\n"
      .. "local token, left = tree:forced(0) eq(token, 4) eq(left, %d) end"):format(left), 3, nil,
      { grammar = grammar })
  end
end

-- A token's text is a space and its number.
function TestTree.test_what_a_grammar_allows_and_forces_behind_a_node()
  local checked = run([[
    function P:draft(tree)
      if tree.seq:length() > 2 then return end
      eq(tree.seq.grammar, true)
      local token, left = tree:forced(0)
      eq(token, 4) eq(left, 5) -- a space is forced, too
      local u = tree:add(0, 4)
      token, left = tree:forced(u)
      eq(token, 5) eq(left, 3)
      local v = tree:add(u, 5)
      eq((tree:forced(v)), 6)
      eq(tree:forced(tree:add(v, 6)), nil, "several may follow:")
      eq(tree:forced(tree:add(0, 3)), nil, "forbidden:")
      eq(tree:allowed(0, 4), true) eq(tree:allowed(0, 3), false) eq(tree:allowed(u, 5), true)
      eq(tree:allowed(u, 4), false) eq(tree:allowed(3, 7), true) eq(tree:allowed(3, 8), true)
      eq(tree:allowed(4, 4), false, "behind a forbidden one:")
      raises("tree:allowed: u: there is no node 5 (the tree has 0..4)", tree.allowed, tree, 5, 1)
      raises("tree:allowed: token: 9 is out of range: 0..8", tree.allowed, tree, 0, 9)
      raises("tree:allowed: token: -1 is out of range: 0..8", tree.allowed, tree, 0, -1)
      raises("tree:allowed: token must be an integer, not nil", tree.allowed, tree, 0, nil)
      raises("tree:forced: u: there is no node -1 (the tree has 0..4)", tree.forced, tree, -1)
      raises("tree:forced: u must be an integer, not nil", tree.forced, tree, nil)
    end
    function P:observe(tree, out)
      if tree.seq:length() > 6 then return end
      eq(out.accepted, 3) eq(out.drafted, 3) -- the forbidden one was left out
      local message = "the iteration is committed; the next draft starts an empty tree"
      raises("tree:allowed: " .. message, tree.allowed, tree, 0, 4)
      raises("tree:forced: " .. message, tree.forced, tree, 0)
    end ]], 8, { eos = 2 }, { grammar = 'root ::= " 4 5 6" (" 7" | " 8")' })
  lu.assertEquals({ table.unpack(checked.tokens, 1, 3) }, { 4, 5, 6 })
  draft([[
    eq(tree.seq.grammar, false) eq(tree:forced(0), nil) eq(tree:allowed(0, 3), true) ]])
end

function TestTree.test_a_calibration_says_what_is_wrong_with_a_call()
  run([[
    local frozen = "the tree cannot change any more: its iteration is committed; the next draft starts an empty one"
    function P:init(seq)
      local s = policy.calibration()
      eq(getmetatable(s), false)
      raises("calibration:apply: not called as a method of a calibration", s.apply, {}, seq.tree)
      raises("policy.calibration: share must be true or false, not number", policy.calibration, 1)
      raises("calibration:apply: not called as a method of a calibration", s.apply, seq.tree, seq.tree)
      raises("calibration:observe: not called as a method of a calibration", s.observe)
      raises("calibration:apply: a tree is expected, not no value", s.apply, s)
      raises("calibration:apply: a tree is expected, not userdata", s.apply, s, s)
      raises("calibration:observe: a tree is expected, not userdata", s.observe, s, seq)
      raises("calibration:observe: this iteration has not committed yet", s.observe, s, seq.tree)
      local _, message = pcall(function() return s.observed end)
      eq(message:sub(-58), ": a calibration has no 'observed': did you mean 'observe'?")
      self.s = s
    end
    function P:draft(tree)
      self.s:apply(tree)
      tree:draft_step(0)
      tree:branch(0, 1)
      raises("calibration:observe: this iteration has not committed yet", self.s.observe, self.s, tree)
    end
    function P:observe(tree)
      self.s:observe(tree)
      raises("calibration:apply: " .. frozen, self.s.apply, self.s, tree)
    end ]], 9)
end

-- Only where guesses know the noise: there a sure draft model that is always right is believed more and more.
function TestTree.test_a_policy_that_uses_calibrate_learns_under_coupled_sampling_only()
  local models = { context = 400, target = { [""] = { [1] = 0.5, [2] = 0.25, [3] = 0.125 } },
                   draft = { [""] = { [1] = 0.5, [2] = 0.25, [3] = 0.125 } } }
  for _, how in ipairs { { temp = 1, coupled = true }, { temp = 1, coupled = false }, { temp = 0, coupled = true } } do
    local learns = how.temp > 0 and how.coupled
    run(([[
    P = policy.define { name = "p", uses = { calibrate = true } }
    function P:init(seq) self.n, self.said = 0, 0 eq(seq.coupled, %s) end
    function P:draft(tree)
      if tree:depth_room() == 0 then return end
      tree:draft_step(0)
      tree:branch(0, 1)
      if not %s then near(tree:p(1), 0.5) end
      self.n = self.n + 1
      if self.n > 100 then self.said = self.said + tree:p(1) end
      if self.n == 150 and %s and self.said / 50 < 0.8 then error("said " .. self.said / 50) end
    end ]]):format(learns, learns, learns), 320, models, { temp = how.temp, seed = 5, coupled = how.coupled })
  end
end

-- 1000 samples: the draft model's own words are those of the tables, whatever the noise makes of them; together the
-- probabilities given the noise come true as often as they say.
function TestTree.test_q_is_the_draft_models_own_and_p_knows_the_noise()
  run([[
    function P:init() self.n, self.said, self.came = 0, 0, 0 end
    function P:draft(tree)
      tree:draft_step(0)
      tree:branch(0, 1)
      near(tree:q(1), tree:token(1) == 1 and 0.5 or tree:token(1) == 2 and 0.25 or tree:token(1) == 3 and 0.125
        or 0.125 / 6)
      self.said, self.n = self.said + tree:p(1), self.n + 1
    end
    function P:observe(tree)
      if tree:accepted(1) then self.came = self.came + 1 end
      if self.n == 900 then
        if self.came / self.n < 0.9 then error("accepted " .. self.came) end
        if self.said / self.n < 0.45 then error("said " .. self.said) end
      end
    end ]], 1000, { context = 1100, target = { [""] = { [1] = 0.5, [2] = 0.25, [3] = 0.125 } },
                    draft = { [""] = { [1] = 0.5, [2] = 0.25, [3] = 0.125 } } }, { temp = 1, seed = 5 })
end

function TestTree.test_an_empty_tree_over_the_last_committed_token()
  draft [[
    eq(tree.root, 0)
    eq(tree.seq.tree, tree)
    eq(tree:size(), 0)
    eq(tree:room(), 256)
    eq(tree:token(0), 8)
    eq(tree:depth(0), 0)
    eq(tree:parent(0), nil)
    eq(tree:p(0), 1.0)
    eq(tree:cumlogp(0), 0.0)
    eq(tree.seq.id, 1) eq(tree.seq.coupled, false) ]]
end

function TestTree.test_branch_adds_the_likeliest_candidates_not_yet_present()
  draft([[
    tree:draft_step(tree.root)
    local first, last = tree:branch(0, 2)
    eq(first, 1) eq(last, 2)
    eq(tree:token(1), 1) eq(tree:token(2), 2)
    near(tree:p(1), 0.5) near(tree:logp(2), math.log(0.25))
    first, last = tree:branch(0, 1)
    eq(first, 3) eq(last, 3) eq(tree:token(3), 3)
    first, last = tree:branch(0, 0)
    eq(first, 4) eq(last, 3)
    first, last = tree:branch(0, -5)
    eq(first, 4) eq(last, 3)
    first, last = tree:branch(0, 100)
    eq(last, 9) -- the whole vocabulary
    eq(tree:size(), 9) ]], 9)
end

function TestTree.test_branch_best_adds_the_likeliest_paths_of_a_list()
  draft([[
    tree:draft_step(0)
    tree:branch(0, 2) -- p 0.5 and 0.25
    tree:draft_step { 1, 2 }
    local first, last = tree:branch_best({ 1, 2 }, 3)
    eq(first, 3) eq(last, 5)
    near(tree:p(3), 0.25)
    assert(tree:p(3) >= tree:p(4) and tree:p(4) >= tree:p(5))
    first, last = tree:branch_best({ 2, 1 }, 1, 1)
    eq(first, 6) eq(last, 6) eq(tree:parent(6), 2)
    first, last = tree:branch_best(0, 1)
    eq(first, 7) eq(last, 7) eq(tree:parent(7), 0)
    first, last = tree:branch_best({}, 5)
    eq(first, 8) eq(last, 7) ]], 9)
end

function TestTree.test_expand_drafts_a_list_and_gives_each_node_its_children()
  draft([[
    local first, last = policy.expand(tree, { 0 }, 1, 2)
    eq(first, 1) eq(last, 2)
    first, last = policy.expand(tree, { 1, 2, 99 }, 2, 2)
    eq(first, 3) eq(last, 6)
    eq(tree:parent(4), 1) eq(tree:parent(5), 2)
    first, last = policy.expand(tree, {}, 0, 2)
    eq(first, 7) eq(last, 6) ]], 9)
end

function TestTree.test_a_draft_step_takes_a_level()
  draft([[
    tree:draft_step(0)
    tree:branch(0, 2)
    tree:draft_step({ 1, 2, 99 }, 2)
    near(tree:confidence(1), 0.5)
    near(tree:confidence(2), 0.5)
    near(tree:entropy(2), math.log(2))
    local token, logp, own = tree:candidate(2, 1)
    eq(token, 5) near(logp, math.log(0.5)) near(own, math.log(0.5))
    eq(tree:candidate(2, 33), nil)
    local first, last = tree:branch(2, 2)
    eq(tree:parent(first), 2) eq(tree:depth(last), 2)
    near(tree:p(last), 0.125) near(tree:cumlogp(last), math.log(0.125))
    tree:draft_step {} -- nothing
    tree.seq:draft_step(first) ]], 9)
end

function TestTree.test_add_takes_any_token_once()
  draft([[
    local v = tree:add(0, 4)
    eq(v, 1) eq(tree:p(1), 1.0)
    eq(tree:add(0, 4), 1)
    eq(tree:add(v, 8, -1.5), 2)
    near(tree:cumlogp(2), -1.5)
    tree:draft_step(2)
    near(tree:confidence(2), 0.5) ]], 9)
end

function TestTree.test_no_room_is_a_value()
  draft([[
    eq(tree:depth_room(), 2) -- three tokens wanted: two drafted ones and the bonus token
    tree:limit(3)
    eq(tree:room(), 3)
    local u = tree:add(tree:add(0, 1), 1)
    eq(tree:depth_room(), 0)
    eq(tree:add(u, 1), nil)
    tree:draft_step(u)
    local first, last = tree:branch(u, 3)
    eq(last, first - 1)
    tree:draft_step(0)
    first, last = tree:branch(0, 3)
    eq(last, first) -- one more node
    eq(tree:room(), 0)
    eq(tree:add(0, 7), nil) ]], 3)
end

function TestTree.test_best_sorts_by_probability_and_ties_by_id()
  draft([[
    local a, b = tree:add(0, 1, -2), tree:add(0, 2, -1)
    local c, d = tree:add(0, 3, -2), tree:add(b, 4, -0.5)
    list(tree:best(3), b, d, a)
    list(tree:best(9), b, d, a, c)
    list(tree:best(0))
    list(tree:best(9, c, d), d, c)
    list(tree:best(9, 3, 2))
    local into = { 9, 9, 9, 9, 9 }
    eq(tree:best(2, 1, 4, into), into)
    list(into, b, d) ]], 9)
end

function TestTree.test_keep_seals_the_tree()
  local result = draft([[
    local a, b = tree:add(0, 1), tree:add(0, 2)
    local c = tree:add(a, 1)
    tree:keep { a, c, a, 0 }
    raises("tree:add: the tree cannot change any more: keep has settled what is verified", tree.add, tree, 0, 3) ]], 3)
  lu.assertEquals({ result.stats.drafted, result.stats.accepted, result.stats.iterations }, { 2, 2, 1 })
  lu.assertEquals(draft("for t = 0, 8 do tree:add(0, t, -t - 1) end tree:keep(4)", 2).stats.drafted, 4)
end

function TestTree.test_what_was_accepted_is_known_after_verify()
  run([[
    function P:draft(tree)
      raises("tree:accepted: the tree is not verified yet", tree.accepted, tree, 0)
      if tree:depth_room() < 2 then return end
      local a, b = tree:add(0, 1), tree:add(0, 2)
      tree:add(a, 3) tree:add(b, 4)
    end
    function P:observe(tree, out)
      if out.drafted == 0 then return end
      eq(tree:accepted(1), true) eq(tree:accepted(2), false)
      eq(tree:accepted(3), false) eq(tree:accepted(4), nil)
      list(out.path, 1)
      eq(out.drafted, 4) eq(out.depth, 2) eq(out.accepted, 1) eq(out.committed, 2)
      eq(tree:size(), 4) -- still readable
      assert(out.draft_ms >= 0 and out.verify_ms >= 0 and out.commit_ms >= 0)
      eq(self.out or out, out)
      self.out = out
    end ]], 6)
end

function TestTree.test_mistakes_raise_and_name_the_argument()
  draft([[
    raises("tree:branch: u: there is no node 7 (the tree has 0..0)", tree.branch, tree, 7, 1)
    raises("tree:branch: u must be an integer, not string", tree.branch, tree, "0", 1)
    raises("tree:branch: b must be an integer, not a fraction", tree.branch, tree, 0, 1.5)
    raises("tree:branch: node 0 has no candidates yet: call draft_step first", tree.branch, tree, 0, 1)
    raises("tree:branch_best: node 0 has no candidates yet: call draft_step first", tree.branch_best, tree, { 0 }, 1)
    raises("tree:branch_best: nodes must be an integer, not nil", tree.branch_best, tree, { 0 }, 1, 2)
    raises("tree:branch_best: k must be an integer, not no value", tree.branch_best, tree, { 0 })
    raises("tree:p: u: there is no node -1 (the tree has 0..0)", tree.p, tree, -1)
    raises("tree:p: not called as a method of a tree", tree.p, 0)
    raises("tree:confidence: u: node 0 has no draft result yet: call draft_step first", tree.confidence, tree, 0)
    raises("tree:add: token: 9 is out of range: 0..8", tree.add, tree, 0, 9)
    raises("tree:add: logp must be a number, not string", tree.add, tree, 0, 1, "0")
    raises("tree:add: logp: 1 is not a log-probability: at most 0", tree.add, tree, 0, 1, 1)
    raises("tree:limit: 0 is out of range: 1..4096", tree.limit, tree, 0)
    raises("tree:draft_step: n = -1 is negative", tree.draft_step, tree, {}, -1)
    raises("tree:draft_step: nodes must be an integer, not nil", tree.draft_step, tree, { 0 }, 2)
    raises("tree:draft_step: nodes must be an integer, not no value", tree.draft_step, tree)
    raises("tree:best: into must be a table, not number", tree.best, tree, 1, 1, 0, 5)
    raises("tree:best: last: there is no node 3 (the tree has 0..0)", tree.best, tree, 1, 1, 3)
    raises("tree:keep: 257 is out of range: 0..256", tree.keep, tree, 257)
    raises("seq:token: i must be an integer, not nil", tree.seq.token, tree.seq, nil)
    raises("seq:commit: unknown option 'rebuilt' (known: rebuild)", tree.seq.commit, tree.seq, { rebuilt = true })
    raises("seq:length: not called as a method of a sequence", tree.seq.length, tree)
    eq(getmetatable(tree), false) ]])
end

function TestTree.test_a_node_that_found_no_room_is_named_with_the_call_that_found_none()
  run([[
    function P:draft(tree)
      tree:draft_step(tree.root)
      if tree:depth_room() == 0 then
        local u = tree:branch(tree.root, 1)
        local why = " found no room below node 0 (the tree may have only 0 levels here): check "
        local none = ": tree:branch" .. why .. "`last < first`"
        raises("tree:draft_step: nodes: there is no node 1 (the tree has 0..0)" .. none, tree.draft_step, tree, u)
        raises("tree:branch: u: there is no node 1 (the tree has 0..0)" .. none, tree.branch, tree, u, 1)
        local v = tree:add(tree.root, 1)
        raises("tree:add: u is nil: tree:add" .. why .. "for nil", tree.add, tree, v, 1)
        raises("tree:p: u: there is no node 1 (the tree has 0..0)", tree.p, tree, 1)
      end
      if tree:depth_room() < 2 then return end
      tree:limit(1)
      local u = tree:branch(tree.root, 1)
      tree:draft_step(u)
      local first = tree:branch_best({ u }, 2)
      raises("tree:p: u: there is no node 2 (the tree has 0..1): tree:branch_best found no room below node 1 "
             .. "(the tree may have only 1 node here): check `last < first`", tree.p, tree, first)
    end ]], 6)
end

TestSeq = {}

function TestSeq.test_committed_tokens_are_readable()
  run([[
    function P:init(seq)
      eq(seq:length(), 2) eq(seq:left(), 4) eq(seq:unread(), 1) eq(seq:token(1), 7) eq(seq:token(2), 8)
      for _, i in next, { 0, 3, -1, math.mininteger, math.maxinteger } do eq(seq:token(i), nil) end
      raises("seq:verify_tree: not in init", seq.verify_tree, seq)
      raises("tree:draft_step: nothing can be drafted in init", seq.tree.draft_step, seq.tree, 0)
    end
    function P:observe(tree, out)
      eq(tree.seq:token(tree.seq:length()), 1)
      eq(tree.seq:length() + tree.seq:left(), 6)
    end ]], 4)
end

function TestSeq.test_a_step_may_roll_back_and_rebuild()
  local result = run([[
    function P:step(seq)
      for _ = 1, 8 do
        seq.tree:add(0, 3)
        seq:rollback()
        eq(seq.tree:size(), 0)
      end
      seq.tree:add(0, 1)
      eq(seq:verify_tree().accepted, 1)
      eq(seq:commit { rebuild = true }, 2)
    end ]], 6)
  lu.assertEquals(result.tokens, { 1, 1, 1, 1, 1, 1 })
  lu.assertEquals(result.stats.iterations, 3)
end

function TestSeq.test_drafting_needs_to_be_declared()
  local pair <close> = assert(dt.fake(options))
  local _, err = pair:generate { prompt = " 1", source = [[
    local P = require "dt.policy".define { name = "p", uses = { draft = false } }
    function P:draft(tree) tree:draft_step(0) end
    return P ]] }
  lu.assertStrContains(err.message, ":2: tree:draft_step: this policy declared uses = {draft = false}")
end

function TestSeq.test_a_draft_model_with_fewer_positions_ends_nothing()
  local result = run([[
    function P:draft(tree)
      tree:draft_step(0)
      local first, last = tree:branch(0, 1)
      if last >= first then tree:draft_step(first) tree:branch(first, 1) eq(tree:confidence(first) >= 0, true) end
    end ]], 40, { draft_context = 12 })
  lu.assertEquals(#result.tokens, 40)
end

os.exit(lu.LuaUnit.run())
