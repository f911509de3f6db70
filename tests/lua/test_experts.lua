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

os.exit(lu.LuaUnit.run())
