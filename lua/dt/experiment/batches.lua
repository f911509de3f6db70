-- Batches in experiments: several sequences generated at once are one run, with one record.
--
--   local list = batches.of(prompts, 8)           -- prompts for dt.experiment, of 8 prompts each
--   local prefixes <close> = batches.open(pair, list[1].texts)
--   local hash = batches.alone(pair, prefixes, options)   -- of each sequence alone, by plain decoding
--   local result = batches.generate(pair, prefixes, options)
--
-- The throughput of a batch is the number of its tokens / its wall time. That is the time of the longest sequence
-- without prompt passes, which all runs share. If sequences end at different times, the last ones run in passes of
-- fewer rows, which the wall time includes.
local seeds = require "dt.seeds"

local batches = {}

-- Groups prompts into batches of `size`, in their order. Prompts that do not fill a batch are left out or, with rest =
-- true, make a smaller batch. before: the number of batches that come earlier, from which these are numbered. The set
-- of a batch is that of its prompts, or "mixed" if they have several.
function batches.of(prompts, size, how)
  local list, set, before = {}, prompts[1].set, how and how.before or 0
  for _, prompt in ipairs(prompts) do set = prompt.set == set and set or "mixed" end
  for first = 1, how and how.rest and #prompts or #prompts - size + 1, size do
    local texts, number = {}, #list + 1
    for i = first, math.min(first + size - 1, #prompts) do texts[#texts + 1] = prompts[i].text end
    list[number] = { set = set, name = ("%s@%d/%d"):format(set, size, before + number), texts = texts,
                     axes = { batch = #texts } }
  end
  return list
end

-- The texts of a prompt: those of a batch, the turns of a conversation, or the only one.
function batches.texts(prompt) return prompt.texts or prompt.turns or { prompt.text } end

local Prefixes = {}

function Prefixes.__close(list)
  for _, prefix in ipairs(list) do getmetatable(prefix).__close(prefix) end
end

-- Runs the prompt passes of several prompts (pair:prefix with the options `how`) and returns the prefixes; or nil and a
-- failure.
function batches.open(pair, prompts, how)
  local list = setmetatable({}, Prefixes)
  for i, prompt in ipairs(prompts) do
    local prefix, failure = pair:prefix(prompt, how)
    if not prefix then
      Prefixes.__close(list)
      return nil, failure
    end
    list[i] = prefix
  end
  return list
end

-- The number of tokens of a result with these stats.
local function tokens_of(s) return math.floor(s.iterations * (s.tokens_per_iteration or 0) + 0.5) end

-- Combines the counts of several results, like those of one run. Returns them, and the number of tokens. TPOT is the
-- time that someone who reads one of the texts waits for a token.
function batches.counts(results)
  local stats = { iterations = 0, drafted = 0, accepted = 0, accepted_by_depth = {} }
  local tokens, depths, tpot = 0, 0, 0
  for _, result in ipairs(results) do
    local s = result.stats
    for _, key in ipairs { "iterations", "drafted", "accepted" } do stats[key] = stats[key] + s[key] end
    tokens = tokens + tokens_of(s)
    depths, tpot = depths + s.iterations * (s.tree_depth_mean or 0), tpot + (s.tpot_ms or 0) / #results
    for i, at in ipairs(s.accepted_by_depth or {}) do
      local sum = stats.accepted_by_depth[i] or { depth = at.depth, verified = 0, accepted = 0 }
      sum.verified, sum.accepted = sum.verified + at.verified, sum.accepted + at.accepted
      stats.accepted_by_depth[i] = sum
    end
  end
  if stats.iterations > 0 then
    local n = stats.iterations
    stats.tokens_per_iteration, stats.path_length = tokens / n, stats.accepted / n
    stats.tree_nodes_mean, stats.tree_depth_mean = stats.drafted / n, depths / n
  end
  if stats.drafted > 0 then stats.acceptance_rate = stats.accepted / stats.drafted end
  stats.tpot_ms = tpot
  return stats, tokens
end

-- The time in ms of sequences that were generated at once, without their prompt passes.
local function wall_of(results)
  local wall = 0
  for _, result in ipairs(results) do
    local s = result.stats
    local n = tokens_of(s)
    if n > 0 then wall = math.max(wall, n / s.tokens_per_second * 1000 - s.time_ms.prompt) end
  end
  return wall
end

-- Generates all prompts at once, with these options of pair:generate. Returns a result like that of a single sequence,
-- whose output_hash has those of all sequences, separated by spaces; or nil and a failure, even if only one sequence
-- failed.
function batches.generate(pair, prompts, options)
  local results, hashes, failed = {}, {}, nil
  local request = { prompts = prompts, slots = #prompts, brief = true }
  for key, value in pairs(options) do request[key] = value end
  function request.on_done(i, result, failure) results[i], failed = result, failed or failure end
  local done, failure = pair:generate_batch(request)
  if not done or failed then return nil, failed or failure end
  local stats, tokens = batches.counts(results)
  local wall = wall_of(results)
  local prompt_tokens, reasons = 0, {}
  for i, result in ipairs(results) do
    hashes[i], reasons[result.finish_reason] = result.stats.output_hash, true
    prompt_tokens = prompt_tokens + result.prompt_tokens
  end
  stats.tokens_per_second, stats.output_hash = wall > 0 and tokens / wall * 1000 or 0.0, table.concat(hashes, " ")
  return { policy = results[1].policy, source = results[1].source, prompt_tokens = prompt_tokens, stats = stats,
           finish_reason = next(reasons, next(reasons)) and "several" or next(reasons) }
end

-- Returns the output_hash that a batch of these prompts must have: each is generated alone by plain decoding, with its
-- seed in the batch; or nil and a failure.
function batches.alone(pair, prompts, options)
  local hashes = {}
  for i, prompt in ipairs(prompts) do
    local request = { prompt = prompt, brief = true }
    for key, value in pairs(options) do request[key] = value end
    request.policy, request.seed = "ar", seeds.after(options.seed or 0, i - 1)
    local result, failure = pair:generate(request)
    if not result then return nil, failure end
    hashes[i] = result.stats.output_hash
  end
  return table.concat(hashes, " ")
end

return batches
