-- The papers' experiments, each with its report.  dtrun run paper NAME [--quick] [-n TOKENS] [--prompts N] [--out FILE]
--                                                dtrun run paper spec_bench --data FOLDER [--temp T]
--
-- dt.papers defines the experiments. The same command continues a result file that is incomplete. A shard makes no
-- report; the report is made from the merged file (dtrun run merge).
local alone = require "dt.alone"
local answers = require "dt.answers"
local asking = require "dt.asking"
local batches = require "dt.batches"
local bound = require "dt.bound"
local complain = require "dt.complain"
local contexts = require "dt.contexts"
local dt = require "dt"
local experiment = require "dt.experiment"
local papers = require "dt.papers"
local questions = require "dt.questions"
local record = require "dt.record"
local report = require "dt.report"
local scatter = require "dt.scatter"
local shard = require "dt.shard"

local PROMPTS = (arg[0]:match "^(.*/)" or "./") .. "prompts/"
local FILES = { wikitext2 = { count = 20, chars = 800 }, novels = { count = 20, chars = 1000 } } -- others: JSON lines
local MOST_NAMED = 12 -- questions that a message names
local QUICK = { arms = 8, batch = 2, tokens = { 8, 16, 24 }, chars = { 50, 100, 150 },
                contexts = { 100, 200 } }
local CONTEXT = 4096 -- of a session, unless -c gives another one: DT_CONTEXT of runtime/dtrun.h

local function names()
  local list = {}
  for name in pairs(papers) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function help()
  local lines = { "runs an experiment from the papers and writes a report; NAME is one of" }
  for _, name in ipairs(names()) do lines[#lines + 1] = ("  %-15s %s"):format(name, papers[name].doc) end
  return table.concat(lines, "\n") .. "\noptions:"
end

-- The options of dt.asking that experiments with questions of the user's take, and those with reasoning.
local ASKING = { system = true, template = true, think = true, temp = true, top_k = true, top_p = true, min_p = true,
                 seed = true }
local OF_REASONING = { system = true, template = true }
local OF_QUESTIONS = {
  { "data", nil, type = "string", value = "FOLDER", doc = "the benchmark's questions: its folder, or a file of them" },
}
for _, option in ipairs(asking.OPTIONS) do
  if ASKING[option[1]] then OF_QUESTIONS[#OF_QUESTIONS + 1] = option end
end

local opts = dt.args {
  doc = help(),
  options = {
    { "quick", false, doc = "a test run of a few seconds: one short prompt of each set, few tokens, some of the arms" },
    { "tokens", nil, type = "integer", short = "n", min = 2, doc = "new tokens (default: the paper's)" },
    { "prompts", nil, type = "integer", min = 1, max = 1000,
      doc = "prompts of each set (default: 10, or as defined)" },
    { "policies", nil, type = "string", doc = "only these policies and plain decoding: rate,suffix (default: all)" },
    { "repeats", nil, type = "integer", min = 1,
      doc = "runs of each arm, prompt and length (default: 3; quick, questions: 1)" },
    { "out", nil, type = "string", doc = "result file (default: NAME.jsonl); the report goes to a folder next to it" },
    shard.OPTION, table.unpack(OF_QUESTIONS),
  },
  rest = "NAME",
}

local name = opts.rest[1] or ""
dt.check(#opts.rest < 2 and papers[name] or nil,
  ("paper: no experiment '%s'; known: %s"):format(table.concat(opts.rest, " "), table.concat(names(), ", ")))
local repeats = opts.repeats or (opts.quick or papers[name].questions) and 1 or 3

-- Options of chats are mistakes in experiments that do not take them. With questions of the user's, --data is needed.
local function check_options(paper)
  for _, option in ipairs(OF_QUESTIONS) do
    local reasoning = OF_REASONING[option[1]]
    local taken = paper.questions or paper.reasoning and reasoning or opts[option[1]] == nil
    dt.check(taken or nil, ("paper %s: --%s is only for %s"):format(name, (option[1]:gsub("_", "-")),
      reasoning and "modes, spec_bench and speed_bench" or "spec_bench and speed_bench"))
  end
  dt.check(opts.data or not paper.questions or nil, ("paper %s: --data FOLDER is missing: the folder with %s"):format(
    name, paper.questions and paper.questions.file))
end
check_options(papers[name])
local how = dt.check(asking.chosen(opts))

local whole = opts.out or name .. (opts.quick and "-quick" or "") .. ".jsonl"
local part = dt.check(shard.chosen(opts.shard, whole))

-- The first n prompts of a set, cut to at most `chars` characters (nil: the set's own length).
local function set_of(set, n, chars)
  local files = FILES[set]
  local request = { chars = chars or files and files.chars }
  if files then
    request.files = {}
    for i = 1, math.min(n, files.count) do request.files[i] = ("%s%s/%02d.txt"):format(PROMPTS, set, i) end
  else
    request.sets = { ("%stasks/%s.jsonl"):format(PROMPTS, set) }
  end
  local list = dt.check(experiment.prompts(request))
  return table.move(list, 1, math.min(n, #list), 1, {})
end

-- The prompts of an experiment: one list for each of its sets, or a single list if they are mixed.
local function lists_of(paper)
  local n = opts.prompts or opts.quick and (paper.batches and QUICK.batch or 1) or paper.prompts or 10
  local lists, cut = {}, opts.quick and QUICK.chars[#QUICK.chars] or nil
  for i, set in ipairs(paper.sets) do
    lists[i] = {}
    for _, chars in ipairs(paper.chars and (opts.quick and QUICK.chars or paper.chars) or { false }) do
      for _, prompt in ipairs(set_of(set, n, chars or cut)) do
        if chars then prompt.name, prompt.axes = ("%s@%d"):format(prompt.name, chars), { chars = chars } end
        table.insert(lists[i], prompt)
      end
    end
  end
  if not paper.mixed then return lists end
  local mixed = {}
  for k = 1, n do
    for _, list in ipairs(lists) do
      if #mixed < n then mixed[#mixed + 1] = list[k] end
    end
  end
  return { mixed }
end

-- The prompts as batches of each of these sizes, or as one batch if there are fewer prompts.
local function batched(list, sizes)
  local all, last = {}, 0
  for _, size in ipairs(sizes) do
    size = math.min(size, #list)
    if size > last then table.move(batches.of(list, size), 1, #list // size, #all + 1, all) end
    last = size
  end
  return all
end

-- Each of the prompts in each of these ways, { label =, generate =, chat = }; the axis has the way's label.
local function in_ways(prompts, axis, ways)
  local all = {}
  for _, way in ipairs(ways) do
    for i, prompt in ipairs(prompts) do
      local copy, axes, generate = {}, { [axis] = way.label }, { seed = i }
      for _, both in ipairs { { prompt, copy }, { prompt.axes or {}, axes }, { way.generate or {}, generate } } do
        for key, value in pairs(both[1]) do both[2][key] = value end
      end
      copy.name, copy.axes, copy.generate = ("%s, %s"):format(prompt.name, way.label), axes, generate
      copy.chat = way.chat
      all[#all + 1] = copy
    end
  end
  return all
end

-- The positions of a text.
local function context_of(pair) return math.min(opts.load.ctx or CONTEXT, pair.target.context) end

-- Prompts of the lengths that fit, and a message if there are others.
local function prompts_by_context(pair, paper)
  local lengths, left_out, context, pool = {}, {}, context_of(pair), {}
  for _, length in ipairs(opts.quick and QUICK.contexts or paper.contexts) do
    local fits = length + math.min(opts.tokens or math.huge, paper.tokens[#paper.tokens]) <= context
    table.insert(fits and lengths or left_out, length)
  end
  dt.check(#lengths > 0 or nil, ("paper: no prompt fits in a context of %d"):format(context))
  for _, set in ipairs(paper.sets) do
    local list = set_of(set, math.huge)
    table.move(list, 1, #list, #pool + 1, pool)
  end
  local list, missing = contexts.before(pair, lists_of(paper)[1], pool, lengths)
  local notes = { #left_out > 0 and ("prompts of %s tokens are left out: the context is %d (-c)"):format(
    table.concat(left_out, ", "), context) or nil }
  if #missing > 0 then
    notes[#notes + 1] = ("prompts of %s tokens are left out: the texts are shorter"):format(table.concat(missing, ", "))
  end
  return list, notes
end

-- The prompts of an experiment, and messages if some are left out.
local function prompts_of(pair, paper)
  if paper.contexts then return prompts_by_context(pair, paper) end
  local all = {}
  for _, list in ipairs(lists_of(paper)) do
    if paper.batches then list = batched(list, paper.batches) end
    table.move(list, 1, #list, #all + 1, all)
  end
  for _, axis in ipairs { "sampling", "reasoning" } do
    if paper[axis] then all = in_ways(all, axis, paper[axis]) end
  end
  return all, {}
end

-- At most n items of a list, at equal distances from the first to the last.
local function some(list, n)
  if #list <= n then return list end
  local chosen = {}
  for i = 1, n do chosen[i] = list[1 + (i - 1) * (#list - 1) // (n - 1)] end
  return chosen
end

-- Returns the lengths to generate, shortened to what fits into the context after the longest prompt, and a message if
-- any was shortened.
local function lengths_that_fit(pair, prompts, wanted)
  local longest, context = 0, context_of(pair)
  for _, prompt in ipairs(prompts) do
    for _, text in ipairs(batches.texts(prompt)) do longest = math.max(longest, #assert(pair:encode(text))) end
  end
  local most, asked, fitting = context - longest, opts.tokens or math.huge, {}
  dt.check(most >= 2 or nil, ("paper: the longest prompt, %d tokens, fills the context of %d"):format(longest, context))
  for _, tokens in ipairs(wanted) do
    local n = math.min(tokens, asked, most)
    if n > (fitting[#fitting] or 0) then fitting[#fitting + 1] = n end
  end
  asked = math.min(wanted[#wanted], asked)
  if asked <= most then return fitting end
  return fitting, ("%d tokens do not fit after the longest prompt, %d, in a context of %d: generating %d"):format(
    asked, longest, context, most)
end

-- The questions of a benchmark that fit, as prompts; the length of answers, and a message if questions are left out.
local function questions_of(pair, paper)
  local list = dt.check(questions.read(opts.data, paper.questions, opts.prompts or opts.quick and 1 or nil))
  local context = context_of(pair)
  local fitting, left_out, kind = questions.that_fit(pair, list, how.chat or {}, context)
  dt.check(fitting, left_out, kind)
  dt.check(fitting[1], ("paper: none of the questions fits in the context of %d tokens"):format(context))
  local tokens = math.min(opts.tokens or math.huge, opts.quick and QUICK.tokens[1] or paper.tokens[1])
  return how:deal(fitting), { tokens }, { left_out[1] and
    ("%d of %d questions do not fit in the context of %d tokens and are left out: %s%s"):format(#left_out, #list,
      context, table.concat(left_out, ", ", 1, math.min(#left_out, MOST_NAMED)),
      #left_out > MOST_NAMED and ", .." or "") }
end

-- What an experiment asks: the prompts, the lengths to generate, and messages if any do not fit.
local function asked_of(pair, paper)
  if paper.questions then return questions_of(pair, paper) end
  local prompts, notes = prompts_of(pair, paper)
  local tokens, shortened = lengths_that_fit(pair, prompts,
    opts.quick and { table.unpack(QUICK.tokens, 1, math.min(#paper.tokens, #QUICK.tokens)) } or paper.tokens)
  notes[#notes + 1] = shortened
  return prompts, tokens, notes
end

-- Prints how long the experiment will take, estimated from plain decoding of a few tokens.
local function announce(t, pair)
  local result = dt.check(pair:generate { policy = "ar", prompt = batches.texts(t.prompts[1])[1],
                                          tokens = math.min(64, t.tokens[1]), ignore_eos = true })
  local tokens, texts, read = 0, 0, 0 -- read: tokens of prompts, which are computed once for all arms
  for _, prompt in ipairs(t.prompts) do
    local list = batches.texts(prompt)
    texts = texts + #list
    for _, text in ipairs(list) do read = read + #assert(pair:encode(text)) end
  end
  local arms = 1 + math.ceil(#t.arms / part.of)
  for _, n in ipairs(t.tokens) do tokens = tokens + n * texts * arms * t.repeats end
  local stats = result.stats
  local seconds = (tokens * (stats.tpot_ms or 1e3 / stats.tokens_per_second)
    + read * stats.ttft_ms / result.prompt_tokens) / 1e3
  local duration = seconds < 90 and ("%.0f s"):format(seconds) or ("%.0f min"):format(seconds / 60)
  complain(("%s: prompts: %d; arms: %d; tokens in all: %d; about %s at the speed of plain decoding"):format(
    t.name, #t.prompts, arms, tokens, duration))
end

-- Whether the pair can run an arm; in an experiment with `fitting` this depends on its draft model and tuned presets.
local function can_run(pair, paper, arm)
  if arm.window and not pair.backend:find "^cpu" then return false end
  if not paper.fitting then return true end
  local info, failure = pair:policy { policy = arm.policy, preset = arm.preset, params = arm.params }
  if arm.preset ~= "tuned" then dt.check(info, failure) end
  return info and (pair.draft or not info.needs_draft)
end

-- The arms of --policies, or all; with questions of the user's, any policies.
local function arms_asked(paper)
  if not opts.policies then return paper.arms end
  local asked, arms, known = {}, {}, {}
  for policy in opts.policies:gmatch "[^,]+" do
    if paper.questions and policy ~= record.BASELINE then arms[#arms + 1] = { policy = policy } end
    asked[policy] = true
  end
  if paper.questions then return arms end
  for _, arm in ipairs(paper.arms) do
    if not known[arm.policy] then known[#known + 1] = arm.policy end
    known[arm.policy] = true
    if asked[arm.policy] then arms[#arms + 1] = arm end
  end
  for policy in pairs(asked) do
    dt.check(known[policy], ("paper: no arms of '%s'; known: %s"):format(policy, table.concat(known, ", ")))
  end
  return arms
end

-- Returns the arms that can run, and a message if others are left out.
local function arms_that_run(pair, paper)
  local arms, asked = {}, arms_asked(paper)
  for _, arm in ipairs(asked) do
    if can_run(pair, paper, arm) then arms[#arms + 1] = arm end
  end
  if paper.fitting or #arms == #asked then return arms end
  return arms, ("StreamingLLM is left out: the backend %s does not support windows"):format(pair.backend)
end

local function labels_of(ways)
  local labels = {}
  for i, way in ipairs(ways or {}) do labels[i] = way.label end
  return ways and labels
end

-- Ends the program if the target's chat template is missing, or cannot turn reasoning on and off.
local function check_reasoning(pair, ways)
  local options = how.chat or {}
  for _, way in ipairs(ways) do
    local found, kind, message = experiment.layout(pair, { template = options.template, think = way.chat.think })
    if not (found or options.template or experiment.has_layout(pair)) then
      message = pair.target.path .. " has no chat template"
    end
    dt.check(found, ("paper %s: %s; give --template FILE, a template with enable_thinking, or --template smollm3")
      :format(name, message), kind)
  end
end

-- Runs one experiment into the file `out`, and returns what dt.record reads from it.
local function run(pair, experiment_name, paper, out)
  if paper.reasoning then check_reasoning(pair, paper.reasoning) end
  local prompts, tokens, notes = asked_of(pair, paper)
  local arms, left_out = arms_that_run(pair, paper)
  notes[#notes + 1] = left_out
  local note = #notes > 0 and table.concat(notes, "; ") or nil
  if note then complain("paper ", experiment_name, ": ", note) end
  local t = {
    name = "paper " .. experiment_name, pair = pair, prompts = prompts, tokens = tokens, repeats = repeats,
    arms = opts.quick and some(arms, QUICK.arms) or arms, warmup = opts.quick and 0 or 2,
    generate = { ignore_eos = not paper.stops },
    protocol = { reference = paper.reference, note = note, alone = paper.alone, sampling = labels_of(paper.sampling),
                 reasoning = labels_of(paper.reasoning) },
    out = out, shard = part.name,
    settings = paper.traced and { [scatter.label(paper.traced)] = #prompts },
    chat = paper.reasoning and (how.chat or {}) or paper.chat and experiment.has_layout(pair) and {} or nil,
  }
  if paper.questions then
    t.chat, t.generate = how.chat or {}, how:options(t.generate)
    t.protocol.seed, t.protocol.by_question = how.seed, paper.questions.by_question
  end
  local checked, mistake = experiment.arms(pair, t.arms)
  dt.check(checked, mistake)
  if paper.bounds then t.settings = bound.settings(t) end
  announce(t, pair)
  local done
  if paper.alone then
    t.repeats, t.warmup = 1, 0
    done = dt.check(alone.run(t, opts.load))
  else
    done = dt.check(experiment.run(t))
  end
  if paper.bounds then
    local costs, times = dt.measure_costs(pair) -- or a failure
    dt.check(costs, times)
    return dt.check(bound.run(t, done.head, costs, times))
  end
  return paper.traced and dt.check(scatter.run(t, done.head, paper.traced)) or done
end

-- Opens the pair for an experiment.
local function open_pair(paper)
  local load = {}
  for key, value in pairs(opts.load) do load[key] = value end
  if paper.contexts then load.draft_window = paper.window and (load.draft_window or paper.window) or nil end
  return dt.check(dt.load(load))
end

-- Prints the table of an experiment with conversations, and where their answers are.
local function print_answers(file, folder)
  local t = answers.table(file)
  if not t then return end
  for i = 0, #t.rows do print(("%-15s %-20s %6s %10s %15s %8s"):format(table.unpack(t.rows[i] or t.columns))) end
  print(folder .. "/run_1")
end

local files, paths = {}, {}
for i, each in ipairs { name, papers[name].also } do
  paths[i] = part:file(i == 1 and whole or ("%s-%s.jsonl"):format(whole:gsub("%.jsonl$", ""),
    each:gsub("^" .. name .. "_", "")))
  local pair <close> = open_pair(papers[each])
  files[i] = run(pair, each, papers[each], paths[i])
  local busy = record.disturbance(files[i].runs)
  if busy then complain(busy) end
end

if part.name then
  print(table.concat(paths, "\n"))
  return
end
local folder, missing = report.write(files, paths)
dt.check(folder, missing, "device")
if missing then complain(missing) end
print_answers(files[1], folder)
print(folder .. "/report.html")
