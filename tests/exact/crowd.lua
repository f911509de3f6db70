-- Many prompts in a few slots: every sequence equals the one that plain decoding generates alone, and memory does not
-- grow after the first few sequences.
-- dtrun run tests/exact/crowd.lua [--prompts 200] [--tokens 24] [--slots 8]
local dt = require "dt"

local opts = dt.args {
  doc = "compares the sequences of many prompts, a few at a time, with those of each by itself",
  options = {
    { "prompts", 200, min = 21, max = 1000, doc = "prompts: pieces of the files, each with its own seed" },
    { "tokens", 24, short = "n", min = 2, max = 100, doc = "tokens generated from each, at most" },
    { "slots", 8, min = 1, max = 256, doc = "prompts at once" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local POLICIES = { "ar", "dynatree", "cast", "token_recycling", "lookahead", "suffix", "echo" }
local CONTEXT = 128 -- some pieces nearly fill it
local FEW, MOST_GROWTH = 20, 3072 -- sequences, and KiB from then on

local load = { costs = dofile(HERE .. "costs.lua") }
for name, value in pairs(opts.load) do load[name] = value end
load.ctx = CONTEXT
local pair = assert(dt.load(load))

-- The first tokens of a file: between 4 tokens and one less than the context, in a mixed order.
local function piece(i)
  local folder = i % 2 == 1 and "wikitext2" or "novels"
  local file = assert(io.open(("%s../../scripts/prompts/%s/%02d.txt"):format(HERE, folder, i // 2 % 20 + 1), "rb"))
  local ids = assert(pair:encode(file:read "a"))
  file:close()
  local text = pair:decode(table.move(ids, 1, 4 + i * 37 % (CONTEXT - 4), 1, {}))
  return #assert(pair:encode(text)) < CONTEXT and text or "The end"
end

local function options(policy, seed)
  return { policy = policy, seed = seed, temp = 1.0, top_p = 0.95, tokens = opts.tokens, stop = { ".", " and" } }
end

-- KiB of this process in memory, after collecting garbage; nil if the system does not say.
local function memory()
  local status = io.open "/proc/self/status"
  if not status then return nil end
  collectgarbage()
  local kib = status:read("a"):match "VmRSS:%s*(%d+)"
  status:close()
  return tonumber(kib)
end

local prompts, expected, reasons = {}, {}, {}
for i = 1, opts.prompts do
  prompts[i] = piece(i)
  local request = options("ar", i)
  request.prompt = prompts[i]
  local solo = assert(pair:generate(request))
  expected[i] = { hash = solo.stats.output_hash, text = solo.text, finish_reason = solo.finish_reason }
  reasons[solo.finish_reason] = (reasons[solo.finish_reason] or 0) + 1
end

local mistakes = 0
local function mistake(...)
  mistakes = mistakes + 1
  print("  WRONG: " .. (...):format(select(2, ...)))
end

for _, reason in ipairs { "length", "stop", "context" } do
  if not reasons[reason] then mistake("no sequence ended by its %s", reason) end
end
for _, policy in ipairs(POLICIES) do
  local ended, start, before = 0, dt.clock(), nil
  local request = options(policy, 1) -- prompt i has the seed i
  request.prompts, request.slots = prompts, opts.slots
  function request.on_done(i, result, failure)
    local solo = expected[i]
    if failure then
      mistake("%s, prompt %d: %s", policy, i, failure)
    elseif result.stats.output_hash ~= solo.hash or result.text ~= solo.text then
      mistake("%s, prompt %d: %q, not %q", policy, i, result.text, solo.text)
    elseif result.finish_reason ~= solo.finish_reason then
      mistake("%s, prompt %d: ends by its %s, not its %s", policy, i, result.finish_reason, solo.finish_reason)
    end
    ended = ended + 1
    if ended == FEW then before = memory() end
  end
  assert(pair:generate_batch(request))
  if ended ~= opts.prompts then mistake("%s: %d sequences", policy, ended) end
  local growth = before and memory() - before or 0
  if growth > MOST_GROWTH then mistake("%s: the memory grew by %d KiB", policy, growth) end
  print(("  %-10s %d sequences in %.1f s, the memory %+d KiB since the first %d"):format(policy, ended,
    (dt.clock() - start) / 1000, growth, FEW))
end
local ends = {}
for reason, n in pairs(reasons) do ends[#ends + 1] = ("%s %d"):format(reason, n) end
table.sort(ends)
print(("%d prompts, %d at once: %d mistakes; ended by %s"):format(opts.prompts, opts.slots, mistakes,
  table.concat(ends, ", ")))
os.exit(mistakes == 0)
