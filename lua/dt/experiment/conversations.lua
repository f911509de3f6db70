-- Conversations in experiments: all turns of a prompt are one run, with one record. The answer to each turn is part of
-- the prompt of the next, as in a chat.
--
--   local result = conversations.generate(pair, start, messages, turns, options)
--   result.turns   -- a list of { text =, lengths = {tokens committed in each iteration}, ms =, ended = (os.time) }
--
-- As in Spec-Bench, the time of a turn includes its prompt pass over the whole conversation, and answers are without
-- white space at both ends. The numbers of a run are those of all its turns together.
local batches = require "dt.batches"
local chat = require "dt.api.chat"

local conversations = {}

local function trim(text) return text:match "^%s*(.-)%s*$" end

-- Generates the answer to one turn; returns its result and what the record keeps of it, or nil and a failure.
local function answer(pair, prompt, options)
  local request, lengths = { prompt = prompt }, {}
  for key, value in pairs(options) do request[key] = value end
  function request.on_logprobs(tokens) lengths[#lengths + 1] = #tokens end
  local result, failure = pair:generate(request)
  if not result then return nil, failure end
  return result, { text = trim(result.text), lengths = lengths, ended = os.time(),
                   ms = #result.tokens / result.stats.tokens_per_second * 1000 }
end

-- The assistant's message that an answer is, for the conversation: { role =, content =, .. }; or nil and a failure.
local function message_of(pair, messages, text, options)
  local prompts, how, why = chat.prompts(pair, { messages }, options, "conversations", 2)
  if not prompts then return nil, { kind = how, message = why } end
  local message, kind
  message, kind, why = chat.message(pair, how, text, options)
  if not message then return nil, { kind = kind, message = why } end
  message.content = trim(message.content)
  return message
end

-- Combines the results of turns to one.
local function combined(results, kept)
  local stats, tokens = batches.counts(results)
  local ms, prompt_tokens, hashes, times = 0, 0, {}, {}
  for i, result in ipairs(results) do
    ms, prompt_tokens, hashes[i] = ms + kept[i].ms, prompt_tokens + result.prompt_tokens, result.stats.output_hash
    for part, value in pairs(result.stats.time_ms) do times[part] = (times[part] or 0) + value end
  end
  local first, last = results[1], results[#results]
  stats.tokens_per_second, stats.output_hash = tokens / ms * 1000, table.concat(hashes, " ")
  stats.time_ms, stats.ttft_ms = times, first.stats.ttft_ms
  return { policy = first.policy, source = first.source, costs = first.costs, prompt_tokens = prompt_tokens,
           finish_reason = last.finish_reason, stats = stats, turns = kept }
end

-- Answers all turns. start: the prefix of `messages`, which end with the first turn. options: those of pair:generate,
-- with those for messages. A conversation ends early if its next turn does not fit into the context. Returns a result
-- like that of a single text, and its turns; or nil and a failure.
function conversations.generate(pair, start, messages, turns, options)
  local results, kept = {}, {}
  for i, turn in ipairs(turns) do
    if i > 1 then
      local message, failure = message_of(pair, messages, kept[i - 1].text, options)
      if not message then return nil, failure end
      table.move({ message, { role = "user", content = turn } }, 1, 2, #messages + 1, messages)
    end
    local result, one = answer(pair, i == 1 and start or messages, options)
    if not result and i > 1 and one.kind == "context" then break end
    if not result then return nil, one end
    results[i], kept[i] = result, one
  end
  return combined(results, kept)
end

return conversations
