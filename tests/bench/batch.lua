-- Several sequences at once, compared with one: the throughput of plain decoding at each batch size over that of one
-- sequence, and that of cast over plain decoding at the same size. Runs alternate, and outputs are compared with those
-- of the sequences alone.
--   dtrun run tests/bench/batch.lua [-m TARGET -md DRAFT] [--at 1,8,32] [-n 48] [--rounds 3] [--policy cast]
local batches = require "dt.batches"
local dt = require "dt"
local statistics = require "dt.statistics"

local opts = dt.args {
  doc = "throughput of plain decoding and of another policy, by batch size",
  options = {
    { "at", "1,8,32", doc = "numbers of sequences at once, separated by commas" },
    { "tokens", 48, short = "n", min = 2, doc = "tokens per sequence" },
    { "rounds", 3, min = 1, doc = "runs of each" },
    { "policy", "cast", doc = "a policy to compare with plain decoding; ar: none" },
  },
}

local pair = dt.check(dt.load(opts.load))
local sizes, texts, most = {}, {}, 0
for size in opts.at:gmatch "%d+" do
  sizes[#sizes + 1] = math.tointeger(tonumber(size))
  most = math.max(most, sizes[#sizes])
end
for i = 1, most do texts[i] = ("Chapter %d. It was "):format(i) end
local prompts <close> = dt.check(batches.open(pair, texts))
local options = { tokens = opts.tokens, ignore_eos = true }
local expected = {}
for hash in dt.check(batches.alone(pair, prompts, options)):gmatch "%S+" do expected[#expected + 1] = hash end

local function speed(policy, size)
  options.policy = policy
  local result = dt.check(batches.generate(pair, table.move(prompts, 1, size, 1, {}), options))
  assert(result.stats.output_hash == table.concat(expected, " ", 1, size), policy .. ": the output differs")
  return result.stats.tokens_per_second, result.stats.tokens_per_iteration
end

local plain, ratios, per_iteration = {}, {}, {} -- by size
for _, size in ipairs(sizes) do
  plain[size], ratios[size] = {}, {}
  for round = 0, opts.rounds do -- round 0 warms up, since caches of this size are new
    local ar, other, tokens
    if round % 2 == 1 then ar = speed("ar", size) end
    if opts.policy ~= "ar" then other, tokens = speed(opts.policy, size) end
    ar = ar or speed("ar", size)
    plain[size][round], ratios[size][round], per_iteration[size] = ar, other and other / ar, tokens
  end
end

for _, size in ipairs(sizes) do
  local all = statistics.mean(plain[size])
  local line = ("%3d at once: ar %.1f tokens/s, %.2fx of %d"):format(size, all, all / statistics.mean(plain[sizes[1]]),
                                                                   sizes[1])
  if opts.policy ~= "ar" then
    local list = table.move(ratios[size], 1, opts.rounds, 1, {})
    table.sort(list)
    line = line .. ("; %s %.3fx of ar (median; %.3f to %.3f), %.2f tokens per iteration"):format(opts.policy,
      statistics.quantile(list, 0.5), list[1], list[#list], per_iteration[size])
  end
  print(line)
end
