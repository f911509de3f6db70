-- When does speculation pay if each row selects additional experts, and with which policy? Everything is simulated with
-- a table, so the numbers are the same on any machine: a scripted text whose guesses come true as often as the draft
-- predicts, a scripted target whose rows choose experts (dt.fake), and passes that take the time of the bytes that they
-- read.
--   dtrun run tests/bench/experts.lua [--texts 3] [--tokens 200]
local dt = require "dt"

local HERE = arg[0]:match "^(.*/)" or "./"
local by_table = dofile(HERE .. "by_table.lua")

local opts = dt.args {
  doc = "speeds of policies on synthetic targets with experts, by a table of costs",
  options = {
    { "texts", 3, min = 1, max = 100, doc = "texts per combination" },
    { "tokens", 200, short = "n", min = 10, max = 500, doc = "tokens of each" },
    { "policies", "linear K=1, linear K=2, linear K=3, linear K=4, dynatree, cast, cast C=1, caddtree, rate",
      doc = "policies with their parameters, in addition to plain decoding" },
  },
}

-- The megabytes that a pass reads for one expert and for everything else; the numbers of layers, of experts, and of
-- experts that a row chooses. Weights have 4.8 bits (Q4_K_M); for gpt-oss 4.25 bits (MXFP4) in experts and 8.5 in the
-- rest. A dense model that reads the same bytes for one row is added for comparison.
local TARGETS = {
  { name = "8 of 128", layers = 48, of = 128, chosen = 8, expert = 2.83, rest = 800 },   -- Qwen3-30B-A3B
  { name = "4 of 32", layers = 24, of = 32, chosen = 4, expert = 13.2, rest = 1290 },    -- gpt-oss-20b
  { name = "dense", layers = 1, of = 1, chosen = 1, expert = 0, rest = 1887 },
}
local KEPT = { 0, 0.41, 0.75 }    -- share of the previous token's experts that a row keeps
local RIGHT = { 0.6, 0.75, 0.9 }  -- share of first guesses that come true
-- The costs of a row, apart from reading, and of a draft pass, as shares of a target pass over one row: many cores that
-- are memory-bound, and few that are not; a head, and a small model.
local MACHINES = { { row = 0.02, draft = 0.05 }, { row = 0.15, draft = 0.05 }, { row = 0.15, draft = 0.2 } }
local SPEED = 20                  -- megabytes per millisecond; ratios do not depend on it
local LAYERS = 8                  -- scripted layers; since all are simulated alike, each represents several
local WIDTH = 4                   -- guesses after each token
local SURE, UNSURE = 0.97, 0.4    -- the draft's own two kinds of first guesses

-- Returns {token = probability}: the first of four tokens has `first`, and each next one half of what remains.
local function guesses(tokens, first)
  local p, left = { [tokens[1]] = first }, 1 - first
  for rank = 2, WIDTH do
    p[tokens[rank]] = rank < WIDTH and left / 2 or left
    left = left - p[tokens[rank]]
  end
  return p
end

local function drawn(tokens, p)
  local u = math.random()
  for _, token in ipairs(tokens) do
    u = u - p[token]
    if u < 0 then return token end
  end
  return tokens[#tokens]
end

-- The draft and the target of a text. Each token occurs once in the text, and after every token of the vocabulary the
-- draft has four guesses of its own. One of them is the token that follows, with the probability that the draft gives
-- it.
local function script(tokens, right, seed)
  math.randomseed(seed)
  local vocab, sure = WIDTH * (tokens + 80), (right - UNSURE) / (SURE - UNSURE)
  local draft, target, unused = {}, {}, {}
  for t = 1, vocab do unused[t] = t - 1 end
  for i = vocab, 2, -1 do
    local j = math.random(i)
    unused[i], unused[j] = unused[j], unused[i]
  end
  local at = table.remove(unused)
  local first = at
  for _ = 1, tokens + 70 do -- along the text
    local list = {}
    for rank = 1, WIDTH do list[rank] = table.remove(unused) end
    local p = guesses(list, math.random() < sure and SURE or UNSURE)
    draft[tostring(at)] = p
    local next = drawn(list, p)
    target[tostring(at)] = { [next] = 1.0 }
    at = next
  end
  for token = 0, vocab - 1 do -- off the text, wrong guesses continue with any tokens
    if not draft[tostring(token)] then
      local list, has = {}, { [token] = true }
      while #list < WIDTH do
        local other = math.random(0, vocab - 1)
        if not has[other] then list[#list + 1], has[other] = other, true end
      end
      draft[tostring(token)] = guesses(list, math.random() < sure and SURE or UNSURE)
    end
  end
  return { vocab = vocab, draft = draft, target = target, prompt = " " .. first }
end

-- The times of passes of 1 to 64 rows, each with as many experts as independent choices would select.
local function table_of(target, machine)
  local one = (target.rest + target.layers * target.chosen * target.expert) / SPEED
  local each = target.expert * target.layers / LAYERS / SPEED
  local t = { contexts = { 128 }, rows = {}, target = { {} }, draft = { {} }, experts = {}, expert = {} }
  for n = 1, 64 do
    local selected = LAYERS * target.of * (1 - (1 - target.chosen / target.of) ^ n)
    t.rows[n], t.experts[n], t.expert[n] = n, selected, each
    t.target[1][n] = target.rest / SPEED + each * selected + machine.row * one * (n - 1)
    t.draft[1][n] = one * machine.draft * (1 + 0.02 * (n - 1))
  end
  return t
end

local file = os.tmpname()

-- The tokens of a pass, the speedup over plain decoding, and the number of experts of a pass divided by that
-- of one row; over all texts.
local function measure(target, kept, costs, texts, arm)
  local passes, tokens, ms, plain, read = 0, 0, 0, 0, 0
  for i, text in ipairs(texts) do
    local pair <close> = dt.check(dt.fake {
      vocab = text.vocab, context = 700, draft = text.draft, target = text.target, costs = costs,
      experts = { layers = LAYERS, of = target.of, chosen = target.chosen, kept = kept } })
    local object, times = dt.measure_costs(pair)
    local result = dt.check(pair:generate {
      policy = arm.policy, preset = arm.preset, params = arm.params, seed = i, costs = "table", trace = file,
      prompt = text.prompt, tokens = opts.tokens, ignore_eos = true })
    ms = ms + by_table.ms(file, object, times, 0)
    passes, tokens = passes + result.stats.iterations, tokens + #result.tokens
    read = read + result.stats.experts_per_pass * result.stats.iterations
    plain = plain + #result.tokens * costs.target[1][1]
  end
  return tokens / passes, plain / ms, read / passes / (LAYERS * target.chosen)
end

local function row(cells) print("| " .. table.concat(cells, " | ") .. " |") end

-- Prints the number of distinct experts of chains, divided by that of one row.
local function print_overlap()
  print "### Distinct experts of a chain, divided by those of one row\n"
  local sizes = { 2, 4, 8, 16 }
  row { "target", "experts kept", "2 rows", "4", "8", "16" }
  row { "---", "---", "---", "---", "---", "---" }
  local text = script(opts.tokens, 0.75, 1)
  for t = 1, 2 do
    for _, kept in ipairs(KEPT) do
      local cells = { TARGETS[t].name, ("%.2f"):format(kept) }
      for _, n in ipairs(sizes) do
        local arm = { policy = "linear", params = { K = n - 1 } }
        local _, _, read = measure(TARGETS[t], kept, table_of(TARGETS[t], MACHINES[1]), { text }, arm)
        cells[#cells + 1] = ("%.2f"):format(read)
      end
      row(cells)
    end
  end
end

local function print_speeds(target, texts_of, arms)
  for _, machine in ipairs(MACHINES) do
    print(("\n### %s: apart from reading, a row costs %g %% of a pass; a draft pass costs %g %%\n"):format(
      target.name, 100 * machine.row, 100 * machine.draft))
    local head, rule = { "right", "kept" }, { "---", "---" }
    for _, arm in ipairs(arms) do head[#head + 1], rule[#rule + 1] = arm.label, "---" end
    row(head)
    row(rule)
    local costs = table_of(target, machine)
    for _, right in ipairs(RIGHT) do
      for _, kept in ipairs(target.expert > 0 and KEPT or { 0 }) do
        local cells = { ("%g"):format(right), target.expert > 0 and ("%.2f"):format(kept) or "" }
        for _, arm in ipairs(arms) do
          local per_pass, speed = measure(target, kept, costs, texts_of[right], arm)
          cells[#cells + 1] = ("%.2fx %.1f"):format(speed, per_pass)
        end
        row(cells)
      end
    end
  end
end

local arms, texts_of = by_table.arms(opts.policies), {}
for _, right in ipairs(RIGHT) do
  texts_of[right] = {}
  for i = 1, opts.texts do texts_of[right][i] = script(opts.tokens, right, 1000 * i + math.tointeger(right * 100)) end
end
print_overlap()
for _, target in ipairs(TARGETS) do print_speeds(target, texts_of, arms) end
os.remove(file)
