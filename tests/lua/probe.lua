-- Helpers for tests of policies: scripted pairs, and the trees that a policy grows on them, read from a trace.
--
--   local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")
--   probe.tree(probe.fake(draft, target), "linear", { K = 2 })        -- "0>2 1>5"
--
-- Both models of a scripted pair are Markov chains over a few tokens: draft[t] holds the probabilities of the tokens
-- after t, target[t] is the token that the target chooses after t. The prompt is 1 by default. A tree is
-- written as its nodes in the order of creation, "parent>token"; several trees have "|" in between.
local dt = require "dt"
local lu = require "luaunit"

local probe = {
  ROOT = arg[0]:match "^(.*/)tests/lua/" or "./",
  TINY = 2.0 ^ -20, -- what separates a threshold from a value just below or above it
}

function probe.fake(draft, target, options)
  local fields = { vocab = 50, context = 512, draft = {}, target = {} }
  for token, next in pairs(draft or {}) do fields.draft[tostring(token)] = next end
  for token, next in pairs(target or {}) do fields.target[tostring(token)] = { [next] = 1.0 } end
  for name, value in pairs(options or {}) do fields[name] = value end
  return assert(dt.fake(fields))
end

-- 1, 2, .. 19, 20, 1, ..: each certain, or with probability p; and the target that goes round with it.
function probe.circle(p)
  local draft, target = {}, {}
  for t = 1, 20 do
    draft[t] = { [t % 20 + 1] = p or 1.0 }
    target[t] = t % 20 + 1
  end
  return draft, target
end

function probe.with(base, more)
  local both = {}
  for name, value in pairs(base) do both[name] = value end
  for name, value in pairs(more) do both[name] = value end
  return both
end

-- A text of n tokens below vocab, of which hardly any three follow each other twice.
function probe.long_text(n, vocab)
  local words = {}
  for i = 1, n do words[i] = " " .. math.random(1, vocab - 1) end
  return table.concat(words)
end

-- The first iterations (default: 1) from a trace; the second result is that of generate.
function probe.trace(pair, policy, params, iterations, options)
  local request = { policy = policy, params = params, prompt = " 1", tokens = 200, ignore_eos = true }
  request = probe.with(request, options or {})
  request.trace = os.tmpname()
  local result = assert(pair:generate(request))
  local list = {}
  for line in io.lines(request.trace) do
    local entry = assert(dt.json.decode(line))
    if entry.iteration and #list < (iterations or 1) then list[#list + 1] = entry end
  end
  os.remove(request.trace)
  lu.assertEquals(#list, iterations or 1, "the text ended early")
  return list, result
end

local function each(describe, ...)
  local texts = {}
  for i, iteration in ipairs((probe.trace(...))) do texts[i] = describe(iteration.nodes) end
  return table.concat(texts, "|")
end

local function shape(nodes)
  local list = {}
  for v = 1, #nodes - 1 do list[v] = nodes[v + 1].parent .. ">" .. nodes[v + 1].token end
  return table.concat(list, " ")
end

local function ids_of(nodes, chosen)
  local list = {}
  for _, node in ipairs(nodes) do
    if chosen(node) then list[#list + 1] = node.id end
  end
  return table.concat(list, " ")
end

local function drafted(nodes) return ids_of(nodes, function(node) return node.confidence end) end

local function kept(nodes) return ids_of(nodes, function(node) return node.kept end) end

function probe.tree(...) return each(shape, ...) end

-- The nodes that the draft model looked at, and those that were verified.
function probe.drafted(...) return each(drafted, ...) end

function probe.kept(...) return each(kept, ...) end

-- {[0] = 0, cumulative log-probability of node 1, 2, ..}, summed as the engine sums them: floats, in a double.
function probe.cumlogp(nodes)
  local sums = { [0] = 0.0 }
  for v = 1, #nodes - 1 do
    local node = nodes[v + 1]
    sums[v] = sums[node.parent] + string.unpack("f", string.pack("f", node.logp or -math.huge))
  end
  return sums
end

-- The first tree's path probabilities.
function probe.probabilities(...)
  local p = probe.cumlogp(probe.trace(...)[1].nodes)
  for v = 1, #p do p[v] = math.exp(p[v]) end
  p[0] = nil
  return p
end

-- How many nodes such a text names.
function probe.count(text)
  local _, n = text:gsub(">", "")
  return n
end

function probe.read(path)
  local file <close> = assert(io.open(probe.ROOT .. path, "rb"))
  return file:read "a"
end

-- The text of a policy that comes with dtrun.
function probe.source(policy)
  for _, folder in ipairs { "policies/", "policies/papers/" } do
    local file <close> = io.open(probe.ROOT .. folder .. policy .. ".lua", "rb")
    if file then return file:read "a" end
  end
  error("no policy " .. policy)
end

-- A policy can only report its state from the box as an error: this one raises the states of the first iterations.
local STATES = [[
local P = (function() %s
end)()
local observe, all = P.observe, {}
function P:observe(tree, out)
  observe(self, tree, out)
  all[#all + 1] = (function(self) return %s end)(self)
  if #all == %d then error("<" .. table.concat(all, "|") .. ">", 0) end
end
return P
]]

-- `expression` (of self) after each of the first iterations, as a list of texts.
function probe.states(expression, pair, policy, params, iterations)
  local source = STATES:format(probe.source(policy), expression, iterations)
  local result, err = pair:generate {
    policy = policy, params = params, prompt = " 1", tokens = 200, ignore_eos = true, source = source,
  }
  assert(not result, "the text ended early")
  lu.assertEquals(err.kind, "policy", err.message)
  local list = {}
  for state in assert(err.message:match "<(.*)>", err.message):gmatch "[^|]+" do list[#list + 1] = state end
  return list
end

return probe
