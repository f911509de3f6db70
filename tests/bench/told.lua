-- How much could a policy gain that is told how likely each guess is, and no more? Beside plain decoding and policies,
-- by the table of costs, without the time of pages. share.lua has the bounds of one that knows the tokens themselves.
--   dtrun run tests/bench/told.lua [--temp 0.8] [--arms "rate, linear K=1"] [--prompts 20] [--tokens 128]
--     [--sets FILE.jsonl] [--questions FILE.jsonl] [--cost-table FILE] [-m TARGET -md DRAFT]
--
-- At each place of a text the draft model guesses a chain, with some siblings of each guess, and a copy of the text is
-- looked up. How often guesses of a kind came true is counted over all these texts: by their depth, whether they are
-- the likeliest, whether a copy says the same, and their probability. That share is what the policy is told, of all
-- guesses of an iteration before it asks for them. It takes the number of draft passes, and with it the likeliest
-- nodes, that add most tokens, less what their time would bring at the speed of this very text. So it learns nothing,
-- tries nothing and keeps no account: a policy that must do so with the same guesses will hardly reach it.
local dt = require "dt"
local by_table = dofile((arg[0]:match "^(.*/)" or "./") .. "by_table.lua")

local opts = dt.args {
  costs = "table",
  doc = "what a policy could gain that knew how likely each guess is",
  options = {
    { "prompts", 20, min = 1, max = 20, doc = "texts to go on with, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "so many texts of each of these sets instead of novels" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) instead of novels, put in ChatML" },
    { "tokens", 128, short = "n", min = 2, max = 400, doc = "tokens of each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "arms", "rate", doc = "policies beside it, each with a preset or parameters" },
    { "cost_table", nil, type = "string", doc = "a table of costs (calibrate --json) instead of a measured one" },
  },
}
local DEEPEST, SIBLINGS = 8, 3 -- draft passes of an iteration; guesses beside the likeliest
local COPIED, LONGEST = 12, 16 -- tokens of a copy; equal tokens that are told apart, as in policy.copies
local MOST = 64                -- nodes that are verified
local BINS, LEAST = 12, 20     -- of the probabilities of a kind, with at least so many guesses in each
local TURNS = 8                -- to find the speed of a text

-- Adds the chain and its siblings, and verifies none of them: the text goes on as in plain decoding.
local LOOK = ([[
local policy = require "dt.policy"
local Look = policy.define { name = "look", uses = { draft = "optional" } }
function Look:init() self.sharpen = policy.sharpen(true) end
function Look:draft(tree)
  local seq, u = tree.seq, 0
  local at, equal = seq:match(LONGEST)
  if at then
    seq:log("at", at)
    seq:log("equal", equal)
  end
  if not seq.drafts then return end
  self.sharpen:apply(tree)
  for _ = 1, math.min(DEEPEST, tree:depth_room()) do
    tree:draft_step(u)
    local first, last = tree:branch(u, 1 + SIBLINGS)
    if last < first then break end
    u = first
  end
  if tree:size() > 0 then tree:keep(0) end
end
function Look:observe(tree) if tree.seq.drafts then self.sharpen:observe(tree) end end
return Look]]):gsub("LONGEST", LONGEST):gsub("DEEPEST", DEEPEST):gsub("SIBLINGS", SIBLINGS)

local pair = by_table.load(opts)
local costs, times = dt.calibrate(pair) -- or a failure
dt.check(costs, times)
local trace = os.tmpname()

local function run(prefix, seed, options)
  for key, value in pairs { prompt = prefix, tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = seed,
                            trace = trace } do options[key] = value end
  pair:forget()
  return dt.check(pair:generate(options))
end

-- ---- the guesses of a place: a list of nodes, a parent before its children ----

-- pass: of the draft model, that makes it; p: its own probability; known: whether its parent is right.
local function node_of(nodes, parent, kind, p, pass, token, comes)
  local above = nodes[parent] or { depth = 0, right = true }
  local depth = above.depth + 1
  return { parent = parent, depth = depth, kind = kind, p = p, pass = pass, known = above.right,
           right = above.right and token == comes(depth) }
end

-- The tokens that a copy would have behind a place, the text's first `length` being there.
local function copied(log, length, text)
  local list = {}
  for i = 1, log.at and COPIED or 0 do
    local at = log.at + i
    list[i] = at <= length and text[at] or list[at - length]
  end
  return list
end

-- The draft model's, as they were traced.
local function drafted(traced, copy, comes)
  local nodes, children, follows = {}, {}, { [0] = true } -- follows: the path to a node is the copy's
  for _, node in ipairs(traced) do
    local u, parent = node.id, node.parent
    if u > 0 then
      local rank, depth = (children[parent] or 0) + 1, parent == 0 and 1 or nodes[parent].depth + 1
      local said = follows[parent] and copy[depth]
      follows[u], children[parent] = said == node.token, rank
      local kind = ("draft %d %s %s"):format(math.min(depth, 3), rank == 1, said and follows[u])
      nodes[u] = node_of(nodes, parent, kind, math.exp(node.logp), depth, node.token, comes)
    end
  end
  return nodes
end

-- The copy alone, for which no pass is needed.
local function copies(equal, copy, comes)
  local nodes = {}
  for i, token in ipairs(copy) do
    nodes[i] = node_of(nodes, i - 1, "copy " .. math.min(equal + i - 1, LONGEST), 1, 0, token, comes)
  end
  return nodes
end

-- ---- the texts ----

local arms, list = by_table.arms(opts.arms), {}

-- Of the run that was traced last: the guesses at each place of the text that plain decoding made.
local function places_of(plain)
  local places, text = {}, table.move(plain.tokens, 1, #plain.tokens, plain.prompt_tokens + 1, plain.prompt_ids)
  for line in io.lines(trace) do
    local iteration = dt.json.decode(line)
    if iteration.nodes then
      local i, log = #places, iteration.log or {}
      local function comes(depth) return plain.tokens[i + depth] end
      local copy = copied(log, iteration.length, text)
      places[i + 1] = { draft = drafted(iteration.nodes, copy, comes), copy = copies(log.equal, copy, comes) }
    end
  end
  return places
end

for number, text in ipairs(by_table.texts(opts)) do
  local prefix = dt.check(pair:prefix(text))
  local plain = run(prefix, number, { policy = "ar" })
  local function ms_of(result)
    assert(result.stats.output_hash == plain.stats.output_hash, "a policy changed the text")
    return (by_table.ms(trace, costs, times, opts.temp))
  end
  local one = { before = plain.prompt_tokens, plain = ms_of(plain), arms = {} }
  for a, arm in ipairs(arms) do
    one.arms[a] = ms_of(run(prefix, number, { policy = arm.policy, preset = arm.preset, params = arm.params }))
  end
  ms_of(run(prefix, number, { policy = "look.lua", source = LOOK }))
  one.places = places_of(plain)
  list[number] = one
end
os.remove(trace)

-- ---- how likely they are ----

local function each(visit)
  for _, one in ipairs(list) do
    for _, place in ipairs(one.places) do
      for _, nodes in ipairs { place.draft, place.copy } do
        for _, node in ipairs(nodes) do visit(node, nodes) end
      end
    end
  end
end

local kinds = {} -- kind -> its guesses whose parents are right
each(function(node)
  local kind = kinds[node.kind] or {}
  kinds[node.kind] = kind
  if node.known then kind[#kind + 1] = node end
end)
for _, kind in pairs(kinds) do
  table.sort(kind, function(a, b) return a.p < b.p end)
  kind.bins = {} -- { upto = their largest p, q = the share of them that is right }
  local bins = math.max(1, math.min(BINS, #kind // LEAST))
  for b = 1, #kind > 0 and bins or 0 do
    local first, last, right = (b - 1) * #kind // bins + 1, b * #kind // bins, 0
    for i = first, last do right = right + (kind[i].right and 1 or 0) end
    kind.bins[b] = { upto = kind[last].p, q = right / (last - first + 1) }
  end
end

local function likely(node)
  local bins = kinds[node.kind].bins
  for _, bin in ipairs(bins) do
    if node.p <= bin.upto then return bin.q end
  end
  return #bins > 0 and bins[#bins].q or 0
end
each(function(node, nodes) node.alpha = likely(node) * (node.parent == 0 and 1 or nodes[node.parent].alpha) end)

-- ---- the way through a text at the rate R ----

local draws = { target = opts.temp > 0 and times.target_draw or 0, draft = opts.temp > 0 and times.draft_draw or 0 }

-- Where it is more than best.value: the value of the likeliest nodes of so many passes, which took ms.
local function choose(nodes, passes, ms, context, R, best)
  local able, sum = {}, 1
  for u, node in ipairs(nodes) do
    if node.pass <= passes then able[#able + 1] = u end
  end
  table.sort(able, function(a, b)
    local x, y = nodes[a].alpha, nodes[b].alpha
    if x ~= y then return x > y end
    return a < b -- parents before their children
  end)
  for k = 0, math.min(#able, MOST) do
    if k > 0 then sum = sum + nodes[able[k]].alpha end
    local whole = ms + costs:target(1 + k, context) + (1 + k) * draws.target
    if sum - R * whole > best.value then
      best.value, best.ms, best.nodes, best.order, best.k = sum - R * whole, whole, nodes, able, k
    end
  end
end

-- Milliseconds and iterations.
local function go_through(one, R)
  local done, ms, iterations, n = 0, 0, 0, #one.places
  while done < n do
    local place, context, best, spent = one.places[done + 1], one.before + done, { value = -math.huge }, 0
    choose(place.copy, 0, 0, context, R, best)
    local deepest = #place.draft > 0 and place.draft[#place.draft].pass or 0
    for passes = 1, math.min(deepest, n - done - 1) do
      spent = spent + (passes == 1 and costs:first(context) or costs:draft(1, context)) + draws.draft
      choose(place.draft, passes, spent, context, R, best)
    end
    local accepted = 0
    for i = 1, best.k do
      local node = best.nodes[best.order[i]]
      if node.right then accepted = math.max(accepted, node.depth) end
    end
    done, ms, iterations = done + 1 + math.min(accepted, n - done - 1), ms + best.ms, iterations + 1
  end
  return ms, iterations
end

local all = { plain = 0, told = 0, iterations = 0, tokens = 0 }
for number, one in ipairs(list) do
  local least, iterations, R = math.huge, 0, #one.places / one.plain
  for _ = 1, TURNS do
    local ms, n = go_through(one, R)
    if ms < least then least, iterations = ms, n end
    R = #one.places / ms
  end
  all.plain, all.told, all.tokens = all.plain + one.plain, all.told + least, all.tokens + #one.places
  all.iterations = all.iterations + iterations
  local cells = { ("text %2d: told %.3f"):format(number, one.plain / least) }
  for a, arm in ipairs(arms) do
    all[a] = (all[a] or 0) + one.arms[a]
    cells[a + 1] = ("%s %.3f"):format(arm.label, one.plain / one.arms[a])
  end
  print(table.concat(cells, ", "))
end
print(("%d texts of %d tokens, temperature %g, %s with %s, %s, %d threads, by the table; outputs equal"):format(#list,
  opts.tokens, opts.temp, pair.target.path, pair.draft and pair.draft.path or "no draft model", pair.backend,
  pair.threads))
print(("%-20s %.3fx plain, %.2f tokens per iteration"):format("told", all.plain / all.told,
  all.tokens / all.iterations))
for a, arm in ipairs(arms) do
  print(("%-20s %.3fx plain, %.1f %% of that"):format(arm.label, all.plain / all[a], 100 * all.told / all[a]))
end
