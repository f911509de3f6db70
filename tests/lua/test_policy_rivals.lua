-- token_recycling, sequoia, caddtree, ddtree, talon, adaptive, lookahead, suffix, echo and rate, node for node against
-- references in Python that were written from the papers, and of rate from its formula: tests/golden/make_policies.py.
local lu = require "luaunit"
local dt = require "dt"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")

local golden = assert(dt.json.decode(probe.read "tests/golden/policies.json"))

local function rules(of)
  local list = {}
  for context, named in pairs(of) do
    list[context] = {}
    for token, p in pairs(named) do list[context][tonumber(token)] = p end
  end
  return list
end

local pairs_of = {}
for name, pair in pairs(golden.pairs) do
  local costs = pair.costs or golden.costs
  pairs_of[name] = assert(dt.fake {
    vocab = golden.vocab, context = 2000, draft = rules(pair.draft), target = rules(pair.target),
    costs = { contexts = { 128 }, rows = costs.rows, target = { costs.target }, draft = { costs.draft },
              cache_miss = costs.cache_miss },
  })
end

local function text_of(prompt) return " " .. table.concat(prompt, " ") end

-- An iteration of a trace as the golden file has it. In a paused one the policy is not called and takes no time.
local function described(iteration)
  local shape, kept, nodes = {}, {}, iteration.nodes
  for v = 1, #nodes - 1 do
    shape[v] = nodes[v + 1].parent .. ">" .. nodes[v + 1].token
    if nodes[v + 1].kept then kept[#kept + 1] = v end
  end
  return { tree = table.concat(shape, " "), kept = table.concat(kept, " "),
           pauses = iteration.ms.policy == 0 or nil }
end

local function check_alone(case, what)
  local prompt = { prompt = text_of(case.prompt), tokens = case.tokens }
  pairs_of[case.pair]:forget()
  local list = probe.trace(pairs_of[case.pair], case.policy, case.params, #case.iterations, prompt)
  for i, expected in ipairs(case.iterations) do
    lu.assertEquals(described(list[i]), expected, ("%s, iteration %d"):format(what, i))
  end
end

-- A batch has no trace: of the tree of sequence `at` an error tells a hash of its shape and how
-- many nodes are verified, which are its likeliest.
local HASHED = [[
local P = (function() %s
end)()
function P:observe(batch, outs)
  local tree, hash = batch[%d], 7
  for v = 1, tree:size() do hash = (hash * 31 + tree:parent(v) * 64 + tree:token(v)) %% 2147483647 end
  error(("<%%d nodes, %%d, %%d verified>"):format(tree:size(), hash, outs[%d].drafted), 0)
end
return P
]]

local function count(text) return select(2, text:gsub("%S+", "")) end

local function check_first(case, what)
  local prompts = {}
  for i, prompt in ipairs(case.prompts) do prompts[i] = text_of(prompt) end
  for at, expected in ipairs(case.first) do
    local _, failure = pairs_of[case.pair]:generate_batch {
      policy = case.policy, source = HASHED:format(probe.source(case.policy), at, at),
      params = case.params, prompts = prompts, slots = #prompts, tokens = 300,
    }
    local hash = 7
    for parent, token in expected.tree:gmatch "(%d+)>(%d+)" do
      hash = (hash * 31 + parent * 64 + token) % 2147483647
    end
    lu.assertEquals(failure.message:match "<.*>", ("<%d nodes, %d, %d verified>"):format(count(expected.tree), hash,
      count(expected.kept)), what)
  end
end

TestRivals = {}

for i, case in ipairs(golden.cases) do
  local what = ("%s %s"):format(case.policy, dt.json.encode(case.params))
  TestRivals[("test_%s_%d_%s"):format(case.policy, i, case.pair)] = function()
    if case.prompts then check_first(case, what) else check_alone(case, what) end
  end
end

os.exit(lu.LuaUnit.run())
