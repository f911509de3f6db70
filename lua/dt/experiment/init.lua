-- Experiments: arms (a policy and its setting) over prompts, lengths and repeats, all compared with plain decoding.
--
--   local experiment = require "dt.experiment"
--   local prompts = assert(experiment.prompts { files = { "novels/01.txt" }, sets = { "gsm8k.jsonl" }, chars = 800 })
--   local done = assert(experiment.run {
--     name = "paper main",
--     pair = pair,                             -- from dt.load
--     arms = { { policy = "linear", params = { K = 3 } }, { label = "narrow", policy = "dynatree", preset = "narrow",
--              axes = { depth = 5 } } },       -- without plain decoding, which always runs, as the arm "ar"; window =
--                                              -- N, sinks = M change the text: such arms must all give the same one
--     prompts = prompts,                       -- { { set =, name =, text =, axes =, generate =, chat = }, ... }; names
--                                              -- are unique in a set; texts = {..} instead of text: a batch
--                                              -- (dt.batches); turns = {..}: a conversation of a chat; generate and
--                                              -- chat are added to those of the experiment
--     tokens = { 100, 300 }, repeats = 3, warmup = 2,
--     generate = { ignore_eos = true },        -- further options of pair:generate
--     chat = { template = "chatml", system = "Be brief." },   -- each text is a question to a chat model (nil: it is
--                                              -- continued), on a fixed day; template = nil: the model's own
--     protocol = { chars = 800 },              -- further fields of the head
--     out = "main.jsonl",                      -- nil: in memory only
--     shard = "3/4",                           -- only the arms dealt to it, and plain decoding (dt.shard); nil: all
--     least = 1,                               -- runs that each arm will have at least (nil: all of these)
--     go_on = true,                            -- a policy's error ends its run only, and is recorded (dt.record)
--     retry = true,                            -- runs again what failed so before, under this text of the policy
--     settings = { label = 4 },                -- further arms that are dealt to shards, with their numbers of runs
--     bar = bar,                               -- a dt.progress that counts this too; nil: its own
--   })
--   done.head, done.runs, done.failures        -- as from record.read, with those of an earlier call
--
-- The prompt pass of a prompt is computed once for all its runs. All arms and plain decoding run a text before the next
-- text begins, each time beginning with a different arm, so that a slow minute of the machine favours no arm. All runs
-- of a text and length must have the same output. Each finished run is a line of `out`, which is on disk before the
-- next run begins; if called again, run continues where it was stopped. A run that other programs disturbed
-- (dtl_disturbed in lua/host.h) is repeated, at most three times. Policies use a measured table of costs, unless the
-- pair was loaded with costs = "learn". Warm-up runs (plain decoding and the first arm; at most 32 tokens) do not
-- count. A batch is one run: its sequences are generated at once, and each must equal the text that plain decoding
-- generates for it alone.
local batches = require "dt.batches"
local chat = require "dt.api.chat"
local complain = require "dt.complain"
local conversations = require "dt.experiment.conversations"
local core = require "dt.core"
local params = require "dt.policy.params"
local place = require "dt.record.place"
local progress = require "dt.api.progress"
local prompts = require "dt.experiment.prompts"
local record = require "dt.record"
local shard = require "dt.shard"

local experiment = { prompts = prompts.read, cut = prompts.cut, layout = chat.layout }

local RUN = { name = true, pair = true, arms = true, prompts = true, tokens = true, repeats = true, warmup = true,
              generate = true, protocol = true, out = true, bar = true, shard = true, least = true, settings = true,
              go_on = true, retry = true, chat = true }
local DATE = "26 Jul 2024" -- date in all chats whose template shows one, so that runs of other days have the same texts
local WARM = 32 -- maximum number of tokens of a warm-up run
local TRIES = 3 -- for a run that is disturbed
local ARM = { label = true, policy = true, preset = true, params = true, axes = true, window = true, sinks = true }

local function merged(...)
  local all = {}
  for _, t in ipairs { ... } do
    for key, value in pairs(t) do all[key] = value end
  end
  return all
end

-- ---- arms ----------------------------------------------------------------------------------------------------------

-- "dynatree narrow D0=5 D_max=8"
function experiment.label(arm)
  local parts = { arm.policy:match "([^/]+)%.lua$" or arm.policy, arm.preset }
  local names = {}
  for name in pairs(arm.params or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do parts[#parts + 1] = name .. "=" .. params.text(arm.params[name]) end
  return table.concat(parts, " ")
end

local checked = setmetatable({}, { __mode = "k" }) -- arm -> description of its policy

-- Checks that the policy allows the arm's settings. Returns its description from pair:policy, or nil and a message.
-- Each arm is checked once.
function experiment.check(pair, arm)
  if checked[arm] then return checked[arm] end
  local info, failure = pair:policy { policy = arm.policy, preset = arm.preset, params = arm.params }
  if not info then return nil, failure.message end
  checked[arm] = info
  return info
end

-- Returns plain decoding and the given arms, all checked, each with the current source digest of its policy, and the
-- sources in the form of record.open; or nil and a message.
function experiment.arms(pair, given)
  local arms, known, sources = {}, {}, {}
  for i, arm in ipairs { { label = record.BASELINE, policy = "ar" }, table.unpack(given) } do
    params.check_keys(arm, ARM, "experiment.run: arm", 3)
    local label = arm.label or experiment.label(arm)
    if known[label] then return nil, ("two arms are called '%s'"):format(label) end
    local info, message = experiment.check(pair, arm)
    if not info then return nil, message end
    known[label] = true
    arms[i] = merged(arm, { label = label, source = info.source })
    sources[info.name] = merged(sources[info.name] or {}, { [info.source] = true })
  end
  return arms, sources
end

-- Checks that the policy's text has not changed since the experiment began. Returns true, or nil, a message and a kind.
function experiment.check_source(arm, result)
  if result.source == arm.source then return true end
  return nil, ("%s: the policy's file has changed during the experiment: %s"):format(arm.label, record.AGAIN), "input"
end

-- ---- running -------------------------------------------------------------------------------------------------------

-- A digest of the texts, for the head.
local function fingerprint(list)
  local all = {}
  for _, prompt in ipairs(list) do
    local texts = batches.texts(prompt)
    all[#all + 1] = ("%s\0%d"):format(prompt.name, #texts)
    table.move(texts, 1, #texts, #all + 1, all)
  end
  return core.digest(all)
end

-- Whether the target has a chat template.
function experiment.has_layout(pair) return chat.layout(pair, {}) ~= nil end

-- The options of chats with which a prompt is a question: its own and those of the experiment.
local function chat_of(t, prompt) return merged(t.chat, prompt.chat or {}) end

-- The facts about chats in the head, which need a chat template for all prompts; or nil, a message and a kind.
local function chat_facts(t)
  if not t.chat then return {} end
  local name, kind, message = chat.layout(t.pair, t.chat)
  for _, prompt in ipairs(t.prompts) do
    if name and prompt.chat then name, kind, message = chat.layout(t.pair, chat_of(t, prompt)) end
  end
  if not name then return nil, message, kind end
  return { chat = name, system = t.chat.system, think = t.chat.think, date = DATE }
end

-- The head of an experiment's file; t as for run, with all fields except out and protocol filled in.
local function head_of(t, chats)
  local pair = t.pair
  local protocol = { tokens = t.tokens, repeats = t.repeats, warmup = t.warmup, prompts = #t.prompts,
                     texts = fingerprint(t.prompts) }
  for _, more in ipairs { t.generate, chats, t.protocol or {} } do
    for key, value in pairs(more) do protocol[key] = value end
  end
  return merged({ experiment = t.name, protocol = protocol, machine = core.machine, version = core.version,
                  began = os.date "!%Y-%m-%d %H:%M:%S UTC", corpus = pair.corpus }, record.facts(pair), pair:identity())
end

local function filled(t) return merged({ repeats = 1, first = 1, warmup = 1, generate = {} }, t) end

-- Options for generating a prompt's runs of this length.
local function options_of(t, prompt, tokens) return merged(t.generate, prompt.generate or {}, { tokens = tokens }) end

-- Texts of a prompt as prompts: continued, or as questions of a chat.
local function asked(t, prompt, texts)
  if not t.chat then return texts end
  local list, system = {}, chat_of(t, prompt).system
  for i, text in ipairs(texts) do
    list[i] = { { role = "user", content = text } }
    if system then table.insert(list[i], 1, { role = "system", content = system }) end
  end
  return list
end

-- The options of pair:prefix and pair:generate that format a prompt as a question.
local function layout(t, prompt)
  if not t.chat then return {} end
  local how = chat_of(t, prompt)
  return { template = how.template, think = how.think, date = DATE }
end

-- Generates, after forgetting the memory of earlier runs, so that the order of runs does not matter.
local function generate(t, arm, prompt, start, tokens)
  t.pair:forget()
  local options = merged(options_of(t, prompt, tokens), layout(t, prompt),
                         { policy = arm.policy, preset = arm.preset, params = arm.params, window = arm.window,
                           sinks = arm.sinks, costs = t.pair.costs or "table" })
  local result, failure
  if arm.window then -- the shared prompt pass is without a window
    start = asked(t, prompt, batches.texts(prompt))
    start = prompt.texts and start or start[1]
  end
  if prompt.texts then
    result, failure = batches.generate(t.pair, start, options)
  elseif prompt.turns then
    result, failure = conversations.generate(t.pair, start, asked(t, prompt, prompt.turns)[1], prompt.turns, options)
  else
    result, failure = t.pair:generate(merged(options, { prompt = start, brief = true }))
  end
  if not result then return nil, failure.message, failure.kind end
  return result
end

-- Calls make() until its result is undisturbed. Returns the result, the number of tries, and the cause if even the last
-- try was disturbed; or nil, a message and a kind from make(). children: make() uses child processes, which also load
-- files; otherwise a CPU backend must have computed all the time. The fastest of disturbed results is returned, since
-- disturbances only slow a run.
function experiment.measured(pair, children, make)
  local computes, best, why = not children and pair.backend:find "^cpu" ~= nil, nil, nil
  for try = 1, TRIES do
    local before = core.usage(children)
    local result, message, kind = make()
    if not result then return nil, message, kind end
    why = core.disturbed(before, core.usage(children), computes)
    if not why then return result, try end
    if not best or result.stats.tokens_per_second > best.stats.tokens_per_second then best = result end
  end
  return best, TRIES, why
end

-- "1020+4": the part of the text that the target sees; nil: all.
local function window_of(arm) return arm.window and ("%d+%d"):format(arm.window, arm.sinks or 0) end

-- The record of one run.
function experiment.run_of(arm, prompt, tokens, number, result)
  local run = { arm = arm.label, policy = result.policy, source = result.source, preset = arm.preset,
                window = window_of(arm), params = arm.params or {},
                axes = merged(prompt.axes or {}, arm.axes or {}), set = prompt.set,
                prompt = prompt.name, tokens = tokens, ["repeat"] = number, finish_reason = result.finish_reason,
                prompt_tokens = result.prompt_tokens, costs = result.costs, stats = result.stats,
                question = prompt.question, turns = result.turns }
  return merged(run, place.here())
end

local function size_of(prompt) return #batches.texts(prompt) end

-- The arms that have not run this text and length, in the order in which they will run. done: record.key -> the nodes
-- where it ran. If plain decoding ran on other nodes only, it runs again if other arms have to run.
local function left_of(arms, first, run, done, node)
  local left, others = {}, false
  for i = 0, #arms - 1 do
    local arm = arms[(first + i) % #arms + 1]
    run.arm = arm.label
    local nodes = done[record.key(run)]
    if not nodes then left[#left + 1], others = arm, true
    elseif arm.label == record.BASELINE and not nodes[node] then left[#left + 1] = arm end
  end
  return others and left or {}
end

-- The remaining runs, prompt by prompt, in their order; and their number, the number of finished runs, and the
-- remaining work.
local function plan(t, arms, done)
  local todo, round, count, made, work, node = {}, 0, 0, 0, 0, place.here().node
  for _, prompt in ipairs(t.prompts) do
    local group = { prompt = prompt }
    for _, tokens in ipairs(t.tokens) do
      for number = t.first, t.first + t.repeats - 1 do
        local first = math.floor(round * 0.618034 * #arms) -- golden ratio: any few rounds begin far apart
        round = round + 1
        local run = { set = prompt.set, prompt = prompt.name, tokens = tokens, ["repeat"] = number }
        local left = left_of(arms, first, run, done, node)
        for _, arm in ipairs(left) do group[#group + 1] = { arm = arm, tokens = tokens, number = number } end
        count, made, work = count + #left, made + #arms - #left, work + #left * size_of(prompt) * tokens
      end
    end
    if #group > 0 then todo[#todo + 1] = group end
  end
  return todo, count, made, work
end

-- Adds the hash of a batch's sequences generated alone, with which the runs of the batch are compared.
local function check_alone(t, prompt, start, tokens, hashes)
  local hash, failure = batches.alone(t.pair, start, options_of(t, prompt, tokens))
  if not hash then return nil, failure.message, failure.kind end
  return record.check_output(hashes, { arm = "plain decoding alone", set = prompt.set, prompt = prompt.name,
                                       tokens = tokens, stats = { output_hash = hash } })
end

-- Whether the experiment goes on after an arm's failure. Without plain decoding there is nothing to compare with.
local function goes_on(t, arm, kind) return t.go_on and kind == "policy" and arm.label ~= record.BASELINE end

local function run_one(t, todo, prompt, start, file, hashes)
  local result, tries, why = experiment.measured(t.pair, false, function()
    return generate(t, todo.arm, prompt, start, todo.tokens)
  end)
  if not result and goes_on(t, todo.arm, why) then
    return file:append_failures { merged({ arm = todo.arm.label, policy = experiment.check(t.pair, todo.arm).name,
      source = todo.arm.source, set = prompt.set, prompt = prompt.name, tokens = todo.tokens,
      ["repeat"] = todo.number, error = tries }, place.here()) }
  end
  if not result then
    return nil, ("%s, %s, %d tokens: %s"):format(todo.arm.label, prompt.name, todo.tokens, tries), why
  end
  local run = experiment.run_of(todo.arm, prompt, todo.tokens, todo.number, result)
  run.tries, run.disturbed = tries, why
  local ok, message, kind
  ok, message, kind = experiment.check_source(todo.arm, result)
  if ok then ok, message, kind = record.check_output(hashes, run) end
  if not ok then return nil, message, kind end
  return file:append(run)
end

-- Makes warm-up runs, whose results are dropped, because in the first runs of a process caches, pages and threads are
-- cold.
local function warm_up(t, arms, prompt, start)
  for i = 1, t.warmup * 2 do
    local arm = arms[(i - 1) % math.min(2, #arms) + 1]
    local result, message, kind = generate(t, arm, prompt, start, math.min(t.tokens[1], WARM))
    if not result and not goes_on(t, arm, kind) then
      return nil, ("%s, %s: %s"):format(arm.label, prompt.name, message), kind
    end
  end
  return true
end

-- The options of pair:generate for plain decoding of a prompt.
function experiment.request(t, prompt, tokens)
  return merged(options_of(filled(t), prompt, tokens), layout(t, prompt),
                { policy = "ar", prompt = asked(t, prompt, { prompt.text })[1] })
end

-- Runs the prompt pass that all runs of a prompt or a batch share; or returns nil and a failure.
local function opened(t, prompt)
  local list = asked(t, prompt, batches.texts(prompt))
  if prompt.texts then return batches.open(t.pair, list, layout(t, prompt)) end
  return t.pair:prefix(list[1], layout(t, prompt))
end

local function run_group(t, group, warm, file, hashes, bar)
  local prompt, ok, message, kind = group.prompt, true, nil, nil
  local start <close>, failure = opened(t, prompt)
  if not start then return nil, ("%s: %s"):format(prompt.name, failure.message), failure.kind end
  if warm then ok, message, kind = warm_up(t, warm, prompt, start) end
  local tokens
  for _, todo in ipairs(group) do
    if ok and prompt.texts and todo.tokens ~= tokens then
      tokens = todo.tokens
      ok, message, kind = check_alone(t, prompt, start, tokens, hashes)
    end
    if not ok then break end
    ok, message, kind = run_one(t, todo, prompt, start, file, hashes)
    if ok then bar:step(1, size_of(prompt) * todo.tokens) end
  end
  return ok, message, kind
end

-- Returns the file that an experiment's runs are added to (record.open), and the arms to run, plain decoding first: all
-- arms, or those of its shard. Returns nil, a message and a kind if that is impossible.
function experiment.open(t)
  t = filled(t)
  if #t.prompts == 0 then return nil, "no prompts: give a file of text or a set of prompts" end
  local arms, sources = experiment.arms(t.pair, t.arms)
  if not arms then return nil, sources end
  local chats, message, kind = chat_facts(t)
  if not chats then return nil, message, kind end
  local head = head_of(t, chats)
  if t.shard then
    head.shard, head.settings = t.shard, {}
    for _, arm in ipairs(arms) do head.settings[arm.label] = t.least or #t.prompts * #t.tokens * t.repeats end
    head.settings = merged(head.settings, t.settings or {})
  end
  local file
  file, message, kind = record.open(t.out, head, sources)
  if not file then return nil, message, kind end
  local own, dealt = shard.own(head), {}
  for _, arm in ipairs(arms) do
    if own[arm.label] then dealt[#dealt + 1] = arm end
  end
  return file, dealt
end

-- Makes the runs of arms (from experiment.arms) that the file does not have. t: as for run, and first: the number of
-- the first repeat (default 1). Returns true; or nil, a message and a kind, with the finished runs in the file.
function experiment.add(file, arms, t)
  t = filled(t)
  local done, hashes, ok, message, kind = {}, {}, true, nil, nil
  for _, run in ipairs(file.runs) do
    local key = record.key(run)
    done[key] = done[key] or {}
    done[key][run.node or ""] = true
    ok, message, kind = record.check_output(hashes, run)
    if not ok then return nil, message, kind end
  end
  local sources = {}
  for _, arm in ipairs(arms) do sources[arm.label] = arm.source end
  for _, failure in ipairs(t.retry and {} or file.failures) do
    if failure.source == sources[failure.arm] then done[record.key(failure)] = { [failure.node or ""] = true } end
  end
  local todo, count, made, work = plan(t, arms, done)
  if made > 0 and count > 0 and not t.bar then
    complain(("%s has %d of the %d runs; the others follow"):format(file.path, made, count + made))
  end
  local bar = t.bar or progress(count + made, work)
  bar:skip(made, 0)
  for i, group in ipairs(todo) do
    if not ok then break end
    ok, message, kind = run_group(t, group, i == 1 and arms, file, hashes, bar)
  end
  return ok, message, kind
end

-- Runs an experiment. Returns { head =, runs =, failures = }; or nil, a message and a kind as for dt.check, with the
-- finished runs in the file.
function experiment.run(t)
  params.check_keys(t, RUN, "experiment.run", 2)
  local file, arms, kind = experiment.open(t)
  if not file then return nil, arms, kind end
  local ok, message
  ok, message, kind = experiment.add(file, arms, t)
  if not ok then return nil, message, kind end
  return { head = file.head, runs = file.runs, failures = file.failures }
end

return experiment
