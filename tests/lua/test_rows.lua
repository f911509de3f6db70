-- What the target says about every verified row: out:candidates, in the box, on scripted pairs.
local lu = require "luaunit"
local dt = require "dt"

local PRELUDE = [[
local policy = require "dt.policy"
local P = policy.define { name = "test", scope = "%s", uses = { draft = false, target = %s } }
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
-- The first k candidates of a node are these tokens with these probabilities.
local function said(out, node, k, ...)
  for i = 1, k do
    local token, logp = out:candidates(node, i)
    local want, p = select(2 * i - 1, ...)
    if token ~= want or math.abs(math.exp(logp) - p) > 1e-6 then
      error(("node %%d, %%d: %%s of %%s"):format(node, i, token, logp and math.exp(logp)), 2)
    end
  end
end
]]

-- After 1 comes 2; the target is as sure as these say, and what they do not name shares what is left.
local TARGET = {
  ["1"] = { [2] = 0.5, [3] = 0.25, [4] = 0.125, [5] = 0.0625, [6] = 0.03125, [7] = 0.015625 },
  ["2"] = { [3] = 0.75, [1] = 0.125, [8] = 0.0625 },
  ["3"] = { [9] = 0.5, [4] = 0.375 },
  ["9"] = { [1] = 0.5, [7] = 0.5 },
}

local function run(body, how)
  how = how or {}
  local pair <close> = assert(dt.fake { vocab = how.vocab or 12, context = 60, target = TARGET })
  local source = PRELUDE:format("sequence", how.k or 8) .. body .. "\nreturn P"
  local request = { policy = "test.lua", source = source, prompt = " 7 1", tokens = how.tokens or 3 }
  for key, value in pairs(how.request or {}) do request[key] = value end
  return pair:generate(request)
end

local function passes(body, how)
  local result, err = run(body, how)
  lu.assertNil(err and err.message)
  return result
end

local function fails(body, text, how)
  local _, err = run(body, how)
  lu.assertStrContains(err.message, text)
end

TestRows = {}

-- 1 > 2 is what the target takes, 1 > 3 > 9 is not.
local GROW = "function P:draft(tree) if tree:depth_room() < 2 then return end "
  .. "tree:add(0, 2) tree:add(0, 3) tree:add(2, 9) end\n"

function TestRows.test_every_verified_row_tells_accepted_or_not()
  passes(GROW .. [[
    function P:observe(tree, out)
      if self.done then return end
      self.done = true
      said(out, 0, 6, 2, 0.5, 3, 0.25, 4, 0.125, 5, 0.0625, 6, 0.03125, 7, 0.015625)
      said(out, 1, 3, 3, 0.75, 1, 0.125, 8, 0.0625)
      said(out, 2, 2, 9, 0.5, 4, 0.375)
      said(out, 3, 2, 1, 0.5, 7, 0.5)
      if tree:accepted(2) ~= false or tree:accepted(3) ~= nil then error "not the rejected ones" end
    end]])
end

-- Between verify and commit, after it, and until the next tree.
function TestRows.test_are_there_from_the_verify_pass_to_the_next_tree()
  passes(GROW .. [[
    function P:step(seq)
      if self.out then raises("out:candidates: the tree is not verified yet", self.out.candidates, self.out, 0, 1) end
      self:draft(seq.tree)
      local out = seq:verify_tree()
      self.out = out
      local token = out:candidates(0, 1)
      seq:commit()
      if out:candidates(0, 1) ~= token then error "changed by the commit" end
      self:observe(seq.tree, out)
    end]], { tokens = 8 })
end

function TestRows.test_a_node_that_was_not_kept_tells_nothing()
  passes(GROW .. [[
    local draft = P.draft
    function P:draft(tree) draft(self, tree) if tree:size() == 3 then tree:keep { 2 } end end
    function P:observe(tree, out)
      if self.done then return end
      self.done = true
      said(out, 2, 2, 9, 0.5, 4, 0.375)
      raises("out:candidates: node 3 was not verified: keep left it out", out.candidates, out, 3, 1)
      raises("out:candidates: node: there is no node 4 (the tree has 0..3)", out.candidates, out, 4, 1)
      raises("out:candidates: node: there is no node -1 (the tree has 0..3)", out.candidates, out, -1, 1)
    end]])
end

function TestRows.test_i_is_bounded_by_what_was_declared()
  local body = [[
    function P:observe(_, out)
      raises("out:candidates: i = 0 is out of range: 1..%d (uses.target)", out.candidates, out, 0, 0)
      raises("out:candidates: i = %d is out of range: 1..%d (uses.target)", out.candidates, out, 0, %d)
      if not out:candidates(0, %d) then error "the last is missing" end
      raises("out:candidates: node must be an integer, not string", out.candidates, out, "0", 1)
      raises("out:candidates: i must be an integer, not nil", out.candidates, out, 0, nil)
      raises("out:candidates: not called as a method of out", out.candidates, 0, 1)
    end]]
  for _, k in ipairs { 1, 8, 32 } do passes(body:format(k, k + 1, k, k + 1, k), { k = k, vocab = 40 }) end
end

function TestRows.test_uses_target_is_an_integer_of_1_to_32()
  for _, bad in ipairs { "0", "33", "-1", "1.5", "true", "'4'" } do
    fails("", "policy.define: test: uses.target is not an integer from 1 to 32", { k = bad })
  end
end

function TestRows.test_a_policy_that_did_not_declare_it_is_told()
  fails("function P:observe(_, out) out:candidates(0, 1) end",
        "out:candidates: this policy did not declare uses = {target = k}", { k = "nil" })
end

-- Sampled tokens change the text, not what the target finds likely.
function TestRows.test_are_without_noise_where_tokens_are_sampled()
  local body = GROW .. [[
    function P:observe(tree, out)
      if tree:size() > 0 then said(out, 2, 2, 9, 0.5, 4, 0.375) end
      if tree:token(0) == 1 then said(out, 0, 3, 2, 0.5, 3, 0.25, 4, 0.125) end
      if tree:token(0) == 2 then said(out, 0, 3, 3, 0.75, 1, 0.125, 8, 0.0625) end
    end]]
  passes(body, { tokens = 40, request = { temp = 1.0, seed = 3 } })
  passes(body, { tokens = 40, request = { temp = 2.0, seed = 4, top_k = 3 } })
end

function TestRows.test_a_vocabulary_of_fewer_tokens_has_fewer()
  local pair <close> = assert(dt.fake { vocab = 3, context = 20, target = { [""] = { [1] = 1.0 } } })
  local _, err = pair:generate { policy = "test.lua", prompt = " 1", tokens = 2,
                                 source = PRELUDE:format("sequence", 8) .. [[
    function P:observe(_, out)
      for i = 1, 8 do
        if (out:candidates(0, i) ~= nil) ~= (i <= 3) then error(i) end
      end
    end
    return P]] }
  lu.assertNil(err and err.message)
end

-- Sequences that share passes have each their own rows, the last of a pass's too.
function TestRows.test_of_a_batch_each_sequence_has_its_own()
  local rules, prompts = {}, {}
  for t = 0, 11 do rules[tostring(t)] = { [(t + 1) % 12] = 0.75, [(t + 5) % 12] = 0.125 } end
  for i = 1, 10 do prompts[i] = " 3 " .. i end
  local pair <close> = assert(dt.fake { vocab = 12, context = 60, target = rules })
  for scope, calls in pairs {
    sequence = "function P:draft(tree) grow(tree) end function P:observe(tree, out) check(tree, out) end",
    batch = "function P:draft(b) for i = 1, #b do grow(b[i]) end end "
      .. "function P:observe(b, outs) for i = 1, #b do check(b[i], outs[i]) end end",
  } do
    local results, failures = pair:generate_batch {
      policy = "test.lua", prompts = prompts, slots = 10, tokens = 7, source = PRELUDE:format(scope, 2) .. [[
      local function grow(tree)
        for i = 1, tree.seq:token(2) do tree:add(math.min(tree:size(), i // 2), i * 3 % 12) end
      end
      local function check(tree, out)
        for u = 0, tree:size() do
          local t = tree:token(u)
          said(out, u, 2, (t + 1) % 12, 0.75, (t + 5) % 12, 0.125)
        end
      end
      ]] .. calls .. "\nreturn P",
    }
    lu.assertEquals(failures, {})
    lu.assertEquals(#results, 10)
    for _, result in ipairs(results) do lu.assertTrue(result.stats.drafted > 0) end
  end
end

os.exit(lu.LuaUnit.run())
