-- Experts of verified rows: out:experts and out.experts_read, in the box, on tiny models with experts.
local lu = require "luaunit"
local dt = require "dt"

local ROOT = arg[0]:match "^(.*/)tests/lua/" or "./"

-- A tree of four nodes, and what its rows took: lists of `layers` of `chosen` rising ids below `experts`; the
-- distinct ones are those that the pass has read.
local SOURCE = [[
local policy = require "dt.policy"
local P = policy.define { name = "test", uses = { draft = false } }
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok or message ~= text then error("expected: " .. text .. ", got: " .. tostring(message), 2) end
end
function P:draft(tree)
  self.nodes = 1
  if tree:depth_room() < 2 then return end
  local first = tree:add(0, 7)
  tree:add(first, 9)
  tree:add(0, 101)
  tree:add(first, 200)
  self.nodes = 5
end
function P:observe(_, out)
  local distinct = 0
  local layers, chosen, experts = %d, %d, %d
  for layer = 1, layers do
    local seen = {}
    for u = 0, self.nodes - 1 do
      local ids = out:experts(u)
      if #ids ~= layers then error "layers" end
      if #ids[layer] ~= chosen then error "chosen" end
      for i, id in ipairs(ids[layer]) do
        if id < 0 or id >= experts or (i > 1 and id <= ids[layer][i - 1]) then error("id " .. id) end
        if not seen[id] then seen[id], distinct = true, distinct + 1 end
      end
    end
  end
  if distinct ~= out.experts_read then error(distinct .. " distinct, read " .. out.experts_read) end
  if self.nodes > 1 and distinct <= layers * chosen then error "all rows took the same" end
  raises("out:experts: node: there is no node " .. self.nodes .. " (the tree has 0.." .. self.nodes - 1 .. ")",
    out.experts, out, self.nodes)
end
return P
]]

local function run(model, layers, chosen, experts)
  local path = ROOT .. "tests/golden/logits/" .. model .. "/model.gguf"
  local pair <close> = assert(dt.load { target = path, draft = false, ctx = 128 })
  local result, err = pair:generate { policy = "test.lua", source = SOURCE:format(layers, chosen, experts),
                                      prompt = "some text", tokens = 12, ignore_eos = true }
  lu.assertNil(err and err.message)
  local plain = assert(pair:generate { policy = "ar", prompt = "some text", tokens = 12, ignore_eos = true })
  lu.assertEquals(result.tokens, plain.tokens)
  lu.assertEquals(plain.stats.experts_per_pass, layers * chosen)
  lu.assertTrue(result.stats.experts_per_pass > layers * chosen)
end

TestExperts = {}

function TestExperts.test_rows_tell_their_experts_and_a_pass_those_that_it_read()
  run("gguf_qwen3moe", 3, 3, 9)
  run("gguf_mixtral", 2, 2, 4)
  run("gguf_qwen35moe", 4, 3, 9)
end

function TestExperts.test_a_model_without_experts_tells_none()
  local pair <close> = assert(dt.load { draft = false })
  local result, err = pair:generate { policy = "test.lua", prompt = "some text", tokens = 4, source = [[
    local P = require "dt.policy".define { name = "test", uses = { draft = false } }
    function P:observe(_, out)
      if out:experts(0) ~= nil or out.experts_read ~= 0 then error "there are some" end
    end
    function P:draft() end
    return P]] }
  lu.assertNil(err and err.message)
  lu.assertNil(result.stats.experts_per_pass)
end

-- A scripted target: rows of the same token share the experts that they newly select, and rows of neighbouring tokens
-- share those that they keep.
local SHARED = [[
local policy = require "dt.policy"
local P = policy.define { name = "test", uses = { draft = false } }
function P:draft(tree)
  if tree:depth_room() < 2 then return end
  tree:add(tree:add(0, 7), 7)
  tree:add(0, 8)
end
function P:observe(tree, out)
  if out.drafted < 3 then return end
  local function shared(u, v)
    local n, a, b = 0, out:experts(u), out:experts(v)
    for layer = 1, #a do
      local has = {}
      for i, id in ipairs(a[layer]) do
        if id < 0 or id > 511 or i > 1 and id <= a[layer][i - 1] then error("id " .. id) end
        has[id] = true
      end
      for _, id in ipairs(b[layer]) do n = n + (has[id] and 1 or 0) end
    end
    return n
  end
  error(table.concat({ shared(0, 0), shared(1, 2), shared(1, 3), shared(0, 1), out.experts_read }, " "), 0)
end
return P
]]

local function shared(kept)
  local pair <close> = assert(dt.fake { vocab = 99, experts = { layers = 40, of = 512, chosen = 8, kept = kept } })
  local _, err = pair:generate { policy = "test.lua", source = SHARED, prompt = " 1 2 3", tokens = 12 }
  local numbers = {}
  for number in err.message:match "[%d ]+$":gmatch "%d+" do numbers[#numbers + 1] = tonumber(number) end
  return table.unpack(numbers)
end

function TestExperts.test_a_scripted_target_keeps_a_part_of_the_experts_of_the_token_before()
  local own, same, siblings, before, read = shared(0)
  lu.assertEquals({ own, same }, { 320, 320 })
  lu.assertTrue(siblings < 20 and before < 20 and read > 3 * 320 - 40 and read <= 3 * 320) -- 8 of 512 by chance: 5
  own, same, siblings, before, read = shared(1)
  lu.assertEquals({ own, same, siblings, before, read }, { 320, 320, 320, 320, 320 })
  own, same, siblings, before = shared(0.5)
  lu.assertEquals(own, 320)
  lu.assertTrue(same > 290 and math.abs(before - 160) < 40 and siblings > 60 and siblings < 130) -- a quarter and more
end

function TestExperts.test_a_scripted_target_whose_experts_make_no_sense_is_refused()
  for message, experts in pairs {
    ["experts: 513 is out of range: 0 to 512"] = { layers = 1, of = 513, chosen = 1 },
    ["experts: -1 is out of range: 0 to 512"] = { layers = 1, of = -1, chosen = 1 },
    ["chosen: 0 is out of range: 1 to 4"] = { layers = 1, of = 4 },
    ["chosen: 5 is out of range: 1 to 4"] = { layers = 1, of = 4, chosen = 5 },
    ["layers: 0 is out of range: 1 to 1024"] = { of = 4, chosen = 4 },
    ["layers: 1025 is out of range: 1 to 1024"] = { layers = 1025, of = 4, chosen = 4 },
    ["kept: -0.5 is out of range: 0 to 1"] = { layers = 1, of = 4, chosen = 4, kept = -0.5 },
    ["kept: 1.5 is out of range: 0 to 1"] = { layers = 1, of = 4, chosen = 4, kept = 1.5 },
    ["kept: nan is out of range: 0 to 1"] = { layers = 1, of = 4, chosen = 4, kept = math.abs(0 / 0) },
  } do
    local pair, err = dt.fake { vocab = 9, experts = experts }
    lu.assertNil(pair)
    lu.assertStrContains(err.message, message)
  end
  lu.assertErrorMsgContains("dt.fake: experts: unknown key 'off'", dt.fake, { vocab = 9, experts = { off = 4 } })
  local least, most = { layers = 1024, of = 1, chosen = 1, kept = 1 }, { layers = 1, of = 512, chosen = 512 }
  for _, experts in ipairs { least, most } do
    assert(dt.fake { vocab = 9, experts = experts }):close()
  end
end

-- What policy.experts expects, of hypothetical passes.
function TestExperts.test_a_policy_expects_as_many_experts_as_passes_of_late_read()
  local costs = { sequences = function() return 2 end }
  local function ids() return { { 1, 5 }, {}, { 0, 3 } } end
  local function out(read) return { experts_read = read, experts = ids } end
  local experts = require "dt.policy".experts(costs)
  experts:observe(1, out(0), 1)
  experts:observe(0.5, out(4)) -- two half rows tell nothing
  lu.assertNil(experts:expected(3))
  experts:observe(4, out(4 * 8 ^ 0.5))
  lu.assertEquals(experts.revision, 1)
  lu.assertAlmostEquals(experts:expected(8), 16, 1e-9) -- of each of two sequences
  lu.assertAlmostEquals(experts:expected(9, 1), 12, 1e-9)
  lu.assertAlmostEquals(experts:expected(1, 1), 4, 1e-9)
  experts:observe(8, out(4 * 16 ^ 0.53)) -- the mean has moved by 0.015, too little to tell
  lu.assertEquals(experts.revision, 1)
  lu.assertAlmostEquals(experts:expected(9, 1), 12, 1e-9)
  for _ = 1, 200 do experts:observe(4, out(4 * 8), 1) end -- no two rows share any
  lu.assertTrue(experts.revision > 1 and experts:expected(8, 1) > 31)
end

os.exit(lu.LuaUnit.run())
