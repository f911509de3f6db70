-- What a draft costs on this machine, and the speedup to expect from it.
--
-- All costs are in passes of the target over one row (plain decoding), at a short context:
--   costs = { rows = f(n): a pass of the target over n rows; first, next: the draft's first and later passes of an
--             iteration (nil: not known); block = one pass makes all guesses; measured = dtrun has timed the pair }
--
-- Costs come from what dtrun keeps about the pair (policies/COSTS.md), otherwise from the bytes that a pass reads, as a
-- pass over few rows is memory-bound.
local json = require "dt.json"

local estimate = {}

-- The cost of one more row. CPU: a pass over five rows of SmolLM2 took 1.6 times as long as over one (the results page
-- models.md); GPU: as in lua/measure/learn.c.
local ROW = { cpu = 0.15, gpu = 0.003 }
-- Bytes of a weight of a head as it is held: q8 on a CPU, 16 bits on a GPU (models/HEADS.md). The small models of
-- models/drafts.txt are counted in the same way.
local WEIGHT = { cpu = 1.0625, gpu = 2 }
local FILE = { cpu = 1.0625 / 2, gpu = 1 } -- bytes held / bytes of a head's file, which is in 16 bits
local LONGEST = 8       -- guesses of a chain
local SHARED = { eagle2 = true, dflash = true, jetspec = true, dspark = true } -- these use the target's output matrix
local BLOCK = { dflash = true, jetspec = true, dspark = true, medusa = true }

local function device(where) return where.backend and where.backend:find "cuda" and "gpu" or "cpu" end

-- ---- from the sizes of the models -----------------------------------------------------------------------------------

-- Bytes that a pass over n rows reads. Rows are assumed to choose their experts independently, so that n rows miss an
-- expert with probability (1 - chosen / experts) ^ n: an upper bound, since neighbours choose alike.
local function bytes_read(model, n)
  if model.experts == 0 then return model.pass end
  return model.pass + model.all_experts * (1 - (1 - model.chosen_experts / model.experts) ^ n)
end

-- A pass over n rows, in units of one over a single row.
local function rows_by_bytes(target, where)
  local plain, row = math.max(bytes_read(target, 1), 1), ROW[device(where)]
  return function(n) return bytes_read(target, n) / plain + row * (n - 1) end
end

-- The cost of a pass of a draft that is here ({kind=, bytes=, pass=, ..}), or of a published one ({kind=, weights=});
-- nil: not known.
local function draft_cost(target, draft, where)
  local plain, on = math.max(bytes_read(target, 1), 1), device(where)
  if draft.pass then return bytes_read(draft, 1) / plain end
  if draft.bytes then return draft.bytes * FILE[on] / plain end
  if not draft.weights then return nil end
  return (draft.weights * 1e6 * WEIGHT[on] + (SHARED[draft.kind] and target.output or 0)) / plain
end

-- ---- from what dtrun has kept ---------------------------------------------------------------------------------------

local ENOUGH = 4 -- a time that was seen less often may have been disturbed
local KINDS = { "target", "draft", "first" } -- of passes

-- A measured table has a list of times for each context, of which the first counts. Learned costs are lists of {rows,
-- context, ms, how often it was seen}; a table is turned into such lists.
local function from_table(t)
  local function list(of)
    local entries = {}
    for i, ms in ipairs(of and of[1] or {}) do entries[i] = { t.rows[i], t.contexts[1], ms, ENOUGH } end
    return entries
  end
  return { key = t.key, target = list(t.target), draft = list(t.draft),
           first = t.first and { { 1, t.contexts[1], t.first[1], ENOUGH } } or {} }
end

local function is_entry(x)
  if type(x) ~= "table" then return false end
  for i = 1, 4 do
    if type(x[i]) ~= "number" then return false end
  end
  return true
end

-- A file of kept costs as {key=, target=, draft=, first=}, lists of entries; nil if it is none, or a table that was
-- measured on a busy machine.
local function kept_in(text)
  local t = json.decode(text)
  if type(t) ~= "table" or type(t.key) ~= "string" or t.disturbed then return nil end
  local read, kept = true, t
  if t.schema == "dtrun.costs/2" then read, kept = pcall(from_table, t) end
  if not read or t.schema ~= "dtrun.costs/2" and t.schema ~= "dtrun.learned/2" then return nil end
  for _, kind in ipairs(KINDS) do
    for _, entry in ipairs(type(kept[kind]) == "table" and kept[kind] or { false }) do
      if not is_entry(entry) then return nil end
    end
  end
  return kept
end

-- Whether costs are those of one greedy sequence on this machine; measure/cost_cache.c writes the key.
local function is_ours(key, where)
  return key:find((", %s, %s, "):format(where.machine, where.backend), 1, true) and key:find(", 1 at once", 1, true)
    and not key:find(", sampled", 1, true)
end

-- Reads the files of kept costs, given as a list of texts: those of one greedy sequence on this machine.
function estimate.kept(texts, where)
  local list = {}
  for _, text in ipairs(texts) do
    local one = where.backend and kept_in(text)
    if one and is_ours(one.key, where) then list[#list + 1] = one end
  end
  return list
end

-- Times by row count, {[rows] = ms}, of a list of entries: the mean over contexts; and the row count seen most often.
local function means(list)
  local sum, weight, ms, usual = {}, {}, {}, nil
  for _, entry in ipairs(list) do
    local rows, _, time, seen = table.unpack(entry)
    sum[rows], weight[rows] = (sum[rows] or 0) + time * seen, (weight[rows] or 0) + seen
  end
  for rows, seen in pairs(weight) do
    if seen >= ENOUGH then
      ms[rows] = sum[rows] / seen
      if not usual or seen > weight[usual] or seen == weight[usual] and rows < usual then usual = rows end
    end
  end
  return ms, usual
end

local function has(one, digest) return digest ~= "" and one.key:find(digest, 1, true) end

-- The cost of a pass over n rows, through the times of the file that knows most row counts: files were written at
-- different times, on a machine that may have been busy. nil: no file knows the time of one row and of more.
local function kept_rows(kept, target)
  local ms, at = nil, { 1 }
  for _, one in ipairs(kept) do
    local times, counts = has(one, target.digest) and means(one.target) or {}, {}
    for n in pairs(times) do counts[#counts + 1] = n end
    if times[1] and #counts > #at then ms, at = times, counts end
  end
  table.sort(at)
  return ms and function(n) -- linear between these times, and beyond them
    local i = 1
    while i + 2 <= #at and at[i + 1] <= n do i = i + 1 end
    local a, b = at[i], at[i + 1]
    return math.max(ms[a] + (ms[b] - ms[a]) * (n - a) / (b - a), ms[1]) / ms[1]
  end
end

-- The costs of the draft's first and later passes by a file about the pair; nil: there is none. A pair makes few passes
-- over one row, so the target's time is that of its most frequent passes.
local function kept_passes(kept, target, digest, rows)
  for _, one in ipairs(kept) do
    if has(one, target.digest) and has(one, digest) then
      local ms, usual = means(one.target)
      local first, later = means(one.first)[1], means(one.draft)[1]
      if usual and (first or later) then
        local plain = ms[usual] / rows(usual)
        return (first or later) / plain, (later or first) / plain
      end
    end
  end
end

-- ---- costs and speedups ---------------------------------------------------------------------------------------------

-- The costs of a target and its draft; kept times come before estimates.
function estimate.costs(target, draft, kept, where)
  local costs = { rows = kept_rows(kept, target) or rows_by_bytes(target, where), block = BLOCK[draft.kind] }
  local first, later
  if draft.digest then first, later = kept_passes(kept, target, draft.digest, costs.rows) end
  local by_bytes = draft_cost(target, draft, where)
  costs.first, costs.next, costs.measured = first or by_bytes, later or by_bytes, first ~= nil
  return costs
end

-- The cost of an iteration with a chain of k guesses.
function estimate.cost(costs, k)
  return costs.rows(k + 1) + costs.first + (costs.block and 0 or (k - 1) * costs.next)
end

-- Tokens per pass of a chain of k guesses, each of which is right with probability p if those before it are:
-- (1 - p^(k + 1)) / (1 - p), Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023), eq. 1.
local function tokens(p, k)
  local sum = 0
  for i = 0, k do sum = sum + p ^ i end
  return sum
end

-- The probability p for which a chain of k guesses yields that many tokens per pass: tokens() solved by bisection.
function estimate.acceptance(k, per_pass)
  local low, high = 0, 1
  for _ = 1, 50 do
    local p = (low + high) / 2
    if tokens(p, k) < per_pass then low = p else high = p end
  end
  return low
end

-- The best speedup over plain decoding with chains of 1 to LONGEST guesses, and their length: tokens per pass divided
-- by the cost of an iteration (the same paper's theorem 3.8, plus the cost of the verified rows, which it takes as 0).
function estimate.speedup(costs, p)
  local best, length = 0, 1
  for k = 1, LONGEST do
    local ratio = tokens(p, k) / estimate.cost(costs, k)
    if ratio > best then best, length = ratio, k end
  end
  return best, length
end

return estimate
