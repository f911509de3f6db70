-- What a model does on this machine: the tests of llama-bench, the cost of rows, and policies on six short texts.
-- scripts/bench.lua runs the parts in turn and keeps their results.
local experiment = require "dt.experiment"

local bench = {}

bench.PROMPT, bench.TOKENS = 512, 128 -- of llama-bench's tests pp512 and tg128
bench.ROWS = { 1, 2, 4, 8, 16, 32, 64 }
bench.PASS_PROMPT, bench.PASS_TOKENS, bench.PASS_TOKENS_MANY = 128, 9, 4 -- of the runs that measure a pass

-- A policy whose passes have a number of rows: the root and children with any tokens, as only the time counts.
local FIXED_ROWS = [[
local policy = require "dt.policy"
local Rows = policy.define { name = "rows", uses = { draft = false },
  params = { { "rows", 1, min = 1, max = 256, doc = "rows of a pass" } } }
function Rows:draft(tree)
  for i = 2, self.rows do tree:add(tree.root, i) end
end
return Rows]]

-- n token ids that are spread over the vocabulary.
local function some_ids(pair, n)
  local ids = {}
  for i = 1, n do ids[i] = i * 7919 % pair.target.vocab end
  return ids
end

-- Runs make() on an undisturbed machine if it can: a value, and the disturbance of the last try or nil; or nil, a
-- message and a kind.
local function undisturbed(pair, make)
  local result, message, kind = experiment.measured(pair, false, function()
    local made, failure = make()
    if not made then return nil, failure.message, failure.kind end
    return made
  end)
  if not result then return nil, message, kind end
  return result, kind
end

-- One round of llama-bench's tests: { pp512 = tokens/s, tg128 = tokens/s, busy = a disturbance or nil }. Sampling the
-- first token is in the time of the prompt, and not in llama-bench's.
function bench.round(pair)
  local function run(ids, tokens)
    return undisturbed(pair, function()
      return pair:generate { policy = "ar", prompt = ids, tokens = tokens, ignore_eos = true, brief = true }
    end)
  end
  local prompt, busy, kind = run(some_ids(pair, bench.PROMPT), 1)
  if not prompt then return nil, busy, kind end
  local text, also
  text, also, kind = run(some_ids(pair, 1), bench.TOKENS + 1)
  if not text then return nil, also, kind end
  return { pp512 = 1e3 * bench.PROMPT / prompt.stats.ttft_ms, tg128 = 1e3 / text.stats.tpot_ms, busy = busy or also }
end

-- Returns the mean of some verify passes over a number of rows after a prompt, in ms.
function bench.pass(pair, rows)
  local result, busy, kind = undisturbed(pair, function()
    return pair:generate { policy = "rows", source = FIXED_ROWS, params = { rows = rows },
                           prompt = some_ids(pair, bench.PASS_PROMPT), ignore_eos = true,
                           tokens = rows < 16 and bench.PASS_TOKENS or bench.PASS_TOKENS_MANY }
  end)
  if not result then return nil, busy, kind end
  return result.stats.time_ms.verify / result.stats.iterations, busy
end

-- The policies that a pair can run, of those that are compared: rate, and settings that never change.
function bench.arms(pair, quick)
  local all = { { policy = "rate" }, { policy = "linear", params = { K = 2 } }, { policy = "suffix" },
                { policy = "dynatree", preset = "narrow" } }
  if not quick then
    for _, arm in ipairs { { policy = "linear", params = { K = 1 } }, { policy = "linear", params = { K = 4 } },
                           { policy = "dynatree" }, { policy = "eagle2" }, { policy = "prompt_lookup" } } do
      all[#all + 1] = arm
    end
  end
  local arms = {}
  for _, arm in ipairs(all) do
    local info = assert(pair:policy { policy = arm.policy, preset = arm.preset, params = arm.params })
    if pair.draft or not info.needs_draft then arms[#arms + 1] = arm end
  end
  return arms
end

bench.llama = require "dt.bench.llama_bench"
bench.results = require "dt.bench.results"

return bench
