-- What uses = { target = k } costs: the same trees with and without it, alternating, and the time of their verify
-- passes.
-- dtrun run tests/bench/candidates.lua [--nodes 32] [--k 4] [--rounds 9] [-m MODEL]
local dt = require "dt"

local opts = dt.args {
  costs = "table",
  doc = "compares the time of verify passes with and without the target's candidates",
  options = {
    { "nodes", 32, min = 1, max = 256, doc = "drafted nodes per tree" },
    { "k", 4, min = 1, max = 32, doc = "candidates per row" },
    { "rounds", 9, min = 3, max = 99, doc = "runs of each, alternating" },
    { "tokens", 40, short = "n", min = 2, max = 1000, doc = "tokens of a run" },
  },
}
local SOURCE = [[
local policy = require "dt.policy"
local P = policy.define { name = "rows", uses = { draft = false%s } }
function P:draft(tree)
  for i = 1, %d do tree:add(math.min(i // 3, tree:size()), 100 + i) end
end
return P]]

local load = opts.load
load.draft = false
local pair = dt.check(dt.load(load))
local prefix = assert(pair:prefix "It was a dark night, and the old man went down to the harbour to look for the ship.")

-- The milliseconds of a verify pass.
local function run(uses)
  local result = assert(pair:generate { policy = "rows.lua", source = SOURCE:format(uses, opts.nodes), prompt = prefix,
                                        tokens = opts.tokens, ignore_eos = true })
  return result.stats.time_ms.verify / result.stats.iterations, result.stats.output_hash
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local uses, ratios, plain, with = (", target = %d"):format(opts.k), {}, {}, {}
run ""
run(uses)
for round = 1, opts.rounds do
  local without, hash = run ""
  local told, same = run(uses)
  local again = run ""
  assert(hash == same, "candidates: the tokens differ with and without candidates")
  plain[#plain + 1], with[#with + 1] = without, told
  ratios[round] = told / ((without + again) / 2)
end
local line = "%s, %d threads, %d nodes, k = %d: "
  .. "%.3f ms per verify pass, %.3f ms with candidates: ratio %.4f, median of %d rounds"
print(line:format(pair.backend, pair.threads, opts.nodes, opts.k, median(plain), median(with), median(ratios),
                  opts.rounds))
