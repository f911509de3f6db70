-- The papers' experiments, each with its report.  dtrun run paper NAME [--quick] [-n TOKENS] [--prompts N] [--out FILE]
--
-- What is run stands in lua/dt/papers.lua. The result file is gone on with where it was stopped.
local alone = require "dt.alone"
local dt = require "dt"
local experiment = require "dt.experiment"
local papers = require "dt.papers"
local report = require "dt.report"
local scatter = require "dt.scatter"

local PROMPTS = (arg[0]:match "^(.*/)" or "./") .. "../tests/data/prompts/"
local FILES = { wikitext2 = { count = 20, chars = 800 }, novels = { count = 20, chars = 1000 } } -- others: JSON lines
local QUICK = { arms = 8, tokens = { 8, 16, 24 }, chars = { 50, 100, 150 } }

local function names()
  local list = {}
  for name in pairs(papers) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function help()
  local lines = { "runs an experiment of the papers and reports on it; NAME is one of" }
  for _, name in ipairs(names()) do lines[#lines + 1] = ("  %-15s %s"):format(name, papers[name].doc) end
  return table.concat(lines, "\n") .. "\noptions:"
end

local opts = dt.args {
  doc = help(),
  options = {
    { "quick", false, doc = "a smoke run of seconds: one short prompt of each set, few tokens, some of the arms" },
    { "tokens", nil, type = "integer", short = "n", min = 2, doc = "new tokens (default: the paper's)" },
    { "prompts", nil, type = "integer", min = 1, max = 20, doc = "prompts of each set (default: the paper's 10)" },
    { "repeats", 1, min = 1, doc = "runs of each arm, prompt and length" },
    { "out", nil, type = "string", doc = "result file (default: NAME.jsonl); the report goes to a folder beside it" },
  },
  rest = "NAME",
}

local name = opts.rest[1] or ""
local paper = dt.check(#opts.rest < 2 and papers[name] or nil,
  ("paper: no experiment '%s'; there are: %s"):format(table.concat(opts.rest, " "), table.concat(names(), ", ")))

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

local function prompts_of(lengths)
  local all, n = {}, opts.prompts or opts.quick and 1 or paper.prompts or 10
  for _, set in ipairs(paper.sets) do
    for _, chars in ipairs(lengths or { false }) do
      local some = set_of(set, n, chars or opts.quick and QUICK.chars[#QUICK.chars] or nil)
      for _, prompt in ipairs(some) do
        if chars then prompt.name, prompt.axes = ("%s@%d"):format(prompt.name, chars), { chars = chars } end
        all[#all + 1] = prompt
      end
    end
  end
  return all
end

-- At most n of a list, from its first to its last at equal distances.
local function some(list, n)
  if #list <= n then return list end
  local chosen = {}
  for i = 1, n do chosen[i] = list[1 + (i - 1) * (#list - 1) // (n - 1)] end
  return chosen
end

-- The lengths to generate that fit beside the longest prompt, and a line where they were shortened.
local function lengths_that_fit(pair, prompts, wanted)
  local longest, context = 0, math.min(opts.load.ctx or math.huge, pair.target.context)
  for _, prompt in ipairs(prompts) do longest = math.max(longest, #assert(pair:encode(prompt.text))) end
  local most, asked, fitting = context - longest, opts.tokens or math.huge, {}
  dt.check(most >= 2 or nil, ("paper: the longest prompt, %d tokens, fills the context of %d"):format(longest, context))
  for _, tokens in ipairs(wanted) do
    local n = math.min(tokens, asked, most)
    if n > (fitting[#fitting] or 0) then fitting[#fitting + 1] = n end
  end
  asked = math.min(wanted[#wanted], asked)
  if asked <= most then return fitting end
  return fitting, ("%d tokens do not fit beside the longest prompt, %d, in a context of %d: %d are generated"):format(
    asked, longest, context, most)
end

-- How long it will take, from plain decoding of a few tokens: speculation is faster or slower by less than the guess.
local function announce(t, pair)
  local result = dt.check(pair:generate { policy = "ar", prompt = t.prompts[1].text,
                                          tokens = math.min(64, t.tokens[1]), ignore_eos = true })
  local tokens = 0
  for _, n in ipairs(t.tokens) do tokens = tokens + n * #t.prompts * (#t.arms + 1) * t.repeats end
  local seconds = tokens / result.stats.tokens_per_second
  local duration = seconds < 90 and ("%.0f s"):format(seconds) or ("%.0f min"):format(seconds / 60)
  io.stderr:write(("dtrun: %s: prompts: %d; arms: %d; tokens in all: %d; about %s at the speed of plain decoding\n")
    :format(t.name, #t.prompts, #t.arms + 1, tokens, duration))
end

local pair = dt.check(dt.load(opts.load))
local prompts = prompts_of(opts.quick and paper.chars and QUICK.chars or paper.chars)
local tokens, note = lengths_that_fit(pair, prompts,
  opts.quick and { table.unpack(QUICK.tokens, 1, math.min(#paper.tokens, #QUICK.tokens)) } or paper.tokens)
if note then io.stderr:write("dtrun: paper ", name, ": ", note, "\n") end

local t = {
  name = "paper " .. name, pair = pair, arms = opts.quick and some(paper.arms, QUICK.arms) or paper.arms,
  prompts = prompts, tokens = tokens, repeats = opts.repeats, warmup = opts.quick and 0 or 2,
  generate = { ignore_eos = not paper.stops },
  protocol = { reference = paper.reference, note = note, alone = paper.alone },
  out = opts.out or name .. (opts.quick and "-quick" or "") .. ".jsonl",
}
announce(t, pair)
local done
if paper.alone then
  t.repeats, t.warmup = 1, 0
  local head = experiment.head(t)
  pair:close()
  done = dt.check(alone.run(t, head, opts.load))
else
  done = dt.check(experiment.run(t))
end
if paper.traced then done = dt.check(scatter.run(t, done.head, paper.traced)) end

local folder, missing = report.write({ done }, { t.out })
dt.check(folder, missing, "device")
if missing then io.stderr:write("dtrun: ", missing, "\n") end
print(folder .. "/report.html")
