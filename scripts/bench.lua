-- Measures a model on this machine.
--   dtrun run bench -m MODEL [--quick] [--against llama-bench=PATH] [--out NAME]
--
-- Plain decoding and prompts as llama-bench tests them, what a pass over several rows costs, and rate and fixed
-- policies on six short texts. Finished parts are in NAME.json and NAME.jsonl, so the same command continues after an
-- interruption; NAME/report.html has the figures.
local bench = require "dt.bench"
local complain = require "dt.complain"
local dt = require "dt"
local experiment = require "dt.experiment"
local record = require "dt.record"
local report = require "dt.report"

local PROMPTS = (arg[0]:match "^(.*/)" or "./") .. "prompts/tasks/"
local TASKS = { "mt_bench", "humaneval", "gsm8k", "alpaca", "sum", "qa" }
local FULL = { rounds = 5, passes = 5, texts = 6, seconds = 600, tokens = 128 }
local QUICK = { rounds = 2, passes = 1, texts = 2, seconds = 60, tokens = 64 }
local LEAST_TOKENS = 16 -- of a text: fewer say little about a policy

local opts = dt.args {
  doc = "measures a model on this machine: prompts, decoding, rows, policies; says how long it will take",
  options = {
    { "quick", false, doc = "fewer rounds, texts and policies" },
    { "against", nil, type = "string", value = "llama-bench=PATH",
      doc = "also run llama.cpp's llama-bench on the same file, in turns" },
    { "out", nil, type = "string", value = "NAME",
      doc = "write NAME.json, NAME.jsonl and the folder NAME (default: bench-MODEL)" },
  },
}
local how = opts.quick and QUICK or FULL
local peer = opts.against and dt.check(bench.llama.path(opts.against))

local load = {}
for name, value in pairs(opts.load) do load[name] = value end
load.costs = load.costs or "learn" -- as runs do
local began = dt.clock()
local pair = dt.check(dt.load(load))
dt.check(not peer or pair.target.path:find "%.gguf$" or nil,
  ("--against: llama-bench reads GGUF files, and %s is none"):format(pair.target.path))
local context = math.min(opts.load.ctx or math.huge, pair.target.context)
dt.check(context > bench.PROMPT or nil, ("bench: %s has a context of %d, and %d are needed"):format(pair.target.path,
  context, bench.PROMPT + 1))

local name = opts.out or "bench-" .. pair.target.path:match "([^/]+)/*$":gsub("%.gguf$", "")
local facts = record.facts(pair)
for key, value in pairs(pair:identity()) do facts[key] = value end
facts.machine, facts.version, facts.quick, facts.against = dt.machine, dt.version, opts.quick, opts.against
local state = dt.check(bench.results.open(name .. ".json", facts, { load_ms = pair.load_ms,
  tests = { "pp" .. bench.PROMPT, "tg" .. bench.TOKENS }, rows = bench.ROWS, rounds = {}, passes = {} }))

local function texts()
  local files = {}
  for i = 1, how.texts do files[i] = PROMPTS .. TASKS[i] .. ".jsonl" end
  local firsts, seen = {}, {}
  for _, prompt in ipairs(dt.check(experiment.prompts { sets = files, chars = 600 })) do
    if not seen[prompt.set] then firsts[#firsts + 1], seen[prompt.set] = prompt, true end
  end
  return firsts
end

local arms, prompts = bench.arms(pair, opts.quick), texts()

-- The number of tokens of a text with which all runs of the policies take some seconds, at the speed of plain decoding.
local function tokens_that_fit(seconds)
  local n = seconds * state:speed "tg128" // ((#arms + 1) * #prompts)
  return math.tointeger(math.max(LEAST_TOKENS, math.min(how.tokens, n)))
end

-- Says how long everything takes, by the seconds of the first round and its speeds.
local function announce(seconds)
  local token, prompt = 1 / state:speed "tg128", bench.PASS_PROMPT / state:speed "pp512"
  local runs = (#arms + 1) * #prompts * tokens_that_fit(how.seconds - seconds * how.rounds) * token
  local rows = how.passes * #bench.ROWS * (prompt + bench.PASS_TOKENS * token)
  complain(("bench: about %.0f min in all; after Ctrl-C the same command continues"):format(
    math.max(1, (seconds * how.rounds + rows + runs) / 60)))
end

local function rounds()
  local bar = dt.progress(how.rounds)
  bar:skip(#state.rounds)
  if #state.rounds == 0 then dt.check(bench.round(pair)) end -- caches and pages are cold
  while #state.rounds < how.rounds do
    local start = dt.clock()
    local round, message, kind = bench.round(pair)
    dt.check(round, message, kind)
    if peer then
      round.peer, message = bench.llama.round(peer, pair.target.path, pair.threads, bench.PROMPT, bench.TOKENS)
      dt.check(round.peer, message, "device")
    end
    table.insert(state.rounds, round)
    dt.check(state:save())
    if #state.rounds == 1 then announce((dt.clock() - start) / 1e3) end
    bar:step()
  end
end

local function passes()
  local bar = dt.progress(how.passes * #bench.ROWS)
  bar:skip(#state.passes * #bench.ROWS)
  while #state.passes < how.passes do
    local turn = { ms = {} }
    for i, rows in ipairs(bench.ROWS) do
      local ms, busy, kind = bench.pass(pair, rows)
      dt.check(ms, busy, kind)
      turn.ms[i], turn.busy = ms, busy or turn.busy
      bar:step()
    end
    table.insert(state.passes, turn)
    dt.check(state:save())
  end
end

local function policies()
  state.tokens = state.tokens or tokens_that_fit(how.seconds - (dt.clock() - began) / 1e3)
  state.texts = #prompts
  dt.check(state:save())
  return dt.check(experiment.run { name = "bench", pair = pair, arms = arms, prompts = prompts,
    tokens = { state.tokens }, warmup = 1, generate = { ignore_eos = true }, out = name .. ".jsonl",
    chat = experiment.has_layout(pair) and {} or nil })
end

rounds()
passes()
local file = policies()
dt.check(state:finish(file))
local lead = bench.results.document(state, dt.check(dt.look(pair.target.path)).bytes)
for _, item in ipairs(lead) do
  if item.text then print("\n" .. item.text) end
  if item.table then io.write(bench.results.plain(item.table)) end
end
local folder, missing = report.write({ file }, { name .. ".jsonl" }, name, lead)
dt.check(folder, missing, "device")
if missing then complain(missing) end
local busy = state:disturbance() or record.disturbance(file.runs)
if busy then complain(busy) end
print(("\n%s.json, %s/report.html"):format(name, folder))
