-- Are learned costs as good as measured ones? Each text is generated with costs that are learned from scratch and with
-- a complete table, alternately; the time from its 100th token on is compared. With --useless, a draft whose guesses
-- are wrong, learned costs are compared with plain decoding, over all tokens.
--   XDG_CACHE_HOME=$(mktemp -d) dtrun run tests/bench/learned.lua [POLICY...] [-m TARGET] [-md DRAFT] [--prompts 8]
local dt = require "dt"

local opts = dt.args {
  doc = "compares learned costs with a measured table, or with plain decoding",
  rest = "POLICY",
  options = {
    { "prompts", 8, min = 1, max = 40, doc = "texts, taken from both folders alternately" },
    { "tokens", 300, short = "n", min = 101, max = 2000, doc = "tokens of each" },
    { "repeats", 4, min = 1, max = 20, doc = "runs of each side and text; the fastest counts" },
    { "useless", false, doc = "the draft is useless: compares with plain decoding, over all tokens" },
    { "verbose", false, short = "v", doc = "prints a line for each text" },
  },
}
local HERE, FROM = arg[0]:match "^(.*/)" or "./", 100
local cache = os.getenv "XDG_CACHE_HOME"
dt.check(cache and cache ~= "" or nil, "learned: set XDG_CACHE_HOME to a folder that may be emptied")

local function forget()
  assert(os.execute(("rm -f '%s'/dtrun/learned-*.json '%s'/dtrun/costs-*.json"):format(cache, cache)))
end

local function prompt_text(i)
  local file = assert(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE,
    i % 2 == 1 and "novels" or "wikitext2", (i + 1) // 2), "rb"))
  local text = file:read "a"
  file:close()
  return text:sub(1, 600)
end

local function loaded(costs)
  local options = {}
  for name, value in pairs(opts.load) do options[name] = value end
  options.costs = costs
  return dt.check(dt.load(options))
end

-- The milliseconds per token of a run: of all tokens but the first or, if `bytes` is given, of those after `bytes` of
-- its text. The time ends with the last piece, since after it the first run of a kind writes its file of costs, once.
local function run(pair, policy, text, bytes)
  local seen, at, last = 0, nil, nil
  local result = dt.check(pair:generate {
    policy = policy, prompt = text, tokens = opts.tokens, ignore_eos = true,
    on_text = function(piece)
      seen, last = seen + #piece, dt.clock()
      if not at and bytes and seen >= bytes then at = last end
    end,
  })
  local stats = result.stats
  if not bytes then return stats.tpot_ms, result end
  return (last - at) / (opts.tokens - FROM), result
end

-- The same with a pair that is loaded again and warmed up, without learning from that. costs: see dt.load.
local function run_fresh(costs, policy, text, bytes)
  forget()
  local pair <close> = loaded(costs)
  dt.check(pair:generate { policy = "ar", prompt = text, tokens = 32, ignore_eos = true, costs = "table" })
  return run(pair, policy, text, bytes)
end

local policies = #opts.rest > 0 and opts.rest or { "rate", "cast", "caddtree" }
local given, lengths, hashes = "table", {}, {}
local backend
do
  local pair <close> = loaded "table"
  backend = pair.backend
  if not opts.useless then given = select(2, dt.measure_costs(pair)) end
  for p = 1, opts.prompts do
    local _, plain = run(pair, "ar", prompt_text(p))
    lengths[p] = not opts.useless and #pair:decode(table.move(plain.tokens, 1, FROM, 1, {})) or nil
    hashes[p] = plain.stats.output_hash
  end
end
for _, policy in ipairs(policies) do
  local ratios = {}
  for p = 1, opts.prompts do
    local text, mine, other = prompt_text(p), math.huge, math.huge
    for r = 1, opts.repeats do
      for side = 1, 2 do
        local learns = (side + r + p) % 2 == 0
        local ms, result = run_fresh(learns and "learn" or given, (learns or not opts.useless) and policy or "ar", text,
          lengths[p])
        assert(result.stats.output_hash == hashes[p], policy .. " changed the output")
        if learns then mine = math.min(mine, ms) else other = math.min(other, ms) end
      end
    end
    ratios[p] = other / mine
    if opts.verbose then print(("%s %d: %.3f ms per token, the other side %.3f ms"):format(policy, p, mine, other)) end
  end
  table.sort(ratios)
  local n = #ratios
  print(("%-10s %s: median %.3f, least %.3f, most %.3f; %d texts, %d tokens, %s"):format(policy,
    opts.useless and "over plain decoding" or "learned over table, from token 100 on",
    (ratios[(n + 1) // 2] + ratios[n // 2 + 1]) / 2, ratios[1], ratios[n], n, opts.tokens, backend))
end
