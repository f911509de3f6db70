-- The results of scripts/bench.lua: the file that keeps them between runs, and their tables.
--
--   {"schema": "dtrun.bench/1", "facts": {..}, "load_ms": 310.2, "tokens": 128, "texts": 6,
--    "tests": ["pp512", "tg128"], "rows": [1, 2, ..],
--    "rounds": [{"pp512": 57.1, "tg128": 18.2, "peer": {"pp512": .., "tg128": .., "commit": ".."}, "busy": ".."}, ..],
--    "passes": [{"ms": [54.9, ..], "busy": ".."}, ..],          one for each turn; ms: of these rows
--    "policies": [{"policy": "rate", "tokens_per_second": .., "speedup": .., "tokens_per_pass": ..}, ..],
--    "memory_bytes": {"host": .., "weights": .., "caches": ..}}
local json = require "dt.json"
local statistics = require "dt.statistics"
local summary = require "dt.report.summary"
local tables = require "dt.draw.tables"

local results = {}

local SCHEMA, BEST = "dtrun.bench/1", 3 -- fixed policies that are shown

local State = {}
State.__index = State

-- Writes the file at once or not at all. Returns true, or nil and a message.
function State:save()
  local own = {}
  for key, value in pairs(self) do own[key] = value end
  own.path = nil
  local file, message = io.open(self.path .. ".new", "wb")
  local written = file and file:write(json.encode(own, true), "\n")
  if file and file:close() and written then return os.rename(self.path .. ".new", self.path) end
  return nil, message or self.path .. ": cannot be written"
end

-- The fact that differs between two runs, with both values; nil: none.
local function difference(old, new)
  local names = {}
  for _, facts in ipairs { old, new } do
    for name in pairs(facts) do names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if old[name] ~= new[name] then return name, old[name], new[name] end
  end
end

-- Returns the state in a file, or a new one of these facts with the fields of `empty`; or nil and a message if the file
-- is not one of these, or was made with other facts.
function results.open(path, facts, empty)
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  local state = text and json.decode(text)
  if not text then
    state = { schema = SCHEMA, facts = facts, began = os.date "!%Y-%m-%d %H:%M:%S UTC" }
    for key, value in pairs(empty) do state[key] = value end
  elseif type(state) ~= "table" or state.schema ~= SCHEMA or type(state.facts) ~= "table" then
    return nil, ("%s: not a result of bench: choose another --out"):format(path)
  else
    local name, old, new = difference(state.facts, facts)
    if name then
      return nil, ("%s: made with %s = %s, not %s: choose another --out"):format(path, name, old, new)
    end
  end
  state.path = path
  return setmetatable(state, State)
end

-- The values of a test in all rounds: of dtrun, or of llama-bench.
local function column(state, test, peer)
  local list = {}
  for i, round in ipairs(state.rounds) do list[i] = (peer and round.peer or round)[test] end
  return list
end

local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  return statistics.quantile(sorted, 0.5)
end

function State:speed(test) return median(column(self, test)) end

-- The median of the rounds' ratios of our speed to llama-bench's. Within a round the programs run one after the other,
-- so the ratio stays the same if the whole machine becomes slower for some rounds.
function State:ratio(test)
  local list, theirs = {}, column(self, test, true)
  for i, ours in ipairs(column(self, test)) do list[i] = ours / theirs[i] end
  return median(list)
end

-- The milliseconds of a pass over state.rows[i] rows.
local function pass_ms(state, i)
  local list = {}
  for k, turn in ipairs(state.passes) do list[k] = turn.ms[i] end
  return median(list)
end

-- A line if the machine was busy.
function State:disturbance()
  local busy, why = 0, nil
  for _, list in ipairs { self.rounds, self.passes } do
    for _, each in ipairs(list) do
      if each.busy then busy, why = busy + 1, each.busy end
    end
  end
  return why and ("The machine was busy in %d of %d measurements (one: %s): measure again when it is idle."):format(
    busy, #self.rounds + #self.passes, why)
end

-- What the policies did, the fastest first, plain decoding left out: { policy =, tokens_per_second =, speedup =,
-- tokens_per_pass = }, after the prompts.
local function policies(file)
  local s, list = summary.new(file), {}
  for _, arm in ipairs(s.arms) do
    local function mean(metric)
      local d = s:describe(metric, { arm = arm.label })
      return d and d.mean
    end
    if not arm.plain then
      list[#list + 1] = { policy = arm.label, tokens_per_second = 1e3 / mean "tpot", speedup = mean "decoding",
                          tokens_per_pass = mean "tokens_per_iteration" }
    end
  end
  table.sort(list, function(a, b) return a.speedup > b.speedup end)
  return list
end

-- Adds what an experiment's file says, and saves the whole.
function State:finish(file)
  self.policies = policies(file)
  for _, run in ipairs(file.runs) do
    if run.arm == "rate" then self.memory_bytes = run.stats.peak_memory_bytes end
  end
  return self:save()
end

-- "57.12 ± 0.40", as llama-bench prints it.
local function spread(list)
  local deviation = statistics.deviation(list)
  return deviation and ("%.2f ± %.2f"):format(statistics.mean(list), deviation) or ("%.2f"):format(list[1])
end

-- llama-bench's columns, and its numbers next to ours if it ran.
local function speeds(state, bytes)
  local facts, peer = state.facts, state.rounds[1].peer
  local t = { columns = { "model", "size", "backend", "threads", "test", "t/s" }, rows = {} }
  if peer then table.move({ "llama.cpp " .. (peer.commit or ""), "ratio" }, 1, 2, 7, t.columns) end
  for i, test in ipairs(state.tests) do
    t.rows[i] = { facts.target:match "[^/]*$", ("%.2f GiB"):format(bytes / 2 ^ 30), facts.backend,
                  ("%d"):format(facts.threads), test, spread(column(state, test)) }
    if peer then
      t.rows[i][7] = spread(column(state, test, true))
      t.rows[i][8] = ("%.2f"):format(state:ratio(test))
    end
  end
  return t
end

local function rows_table(state)
  local t = { columns = { "rows of a pass" }, rows = { { "ms" }, { "times one row" } } }
  local one = pass_ms(state, 1)
  for i, rows in ipairs(state.rows) do
    local ms = pass_ms(state, i)
    t.columns[i + 1] = ("%d"):format(rows)
    t.rows[1][i + 1], t.rows[2][i + 1] = ("%.1f"):format(ms), ("%.2f"):format(ms / one)
  end
  return t
end

local function policy_table(state)
  local t, fixed = { columns = { "policy", "tokens/s", "speedup", "tokens per pass" }, rows = {} }, 0
  for _, each in ipairs(state.policies) do
    local is_rate = each.policy == "rate"
    if not is_rate then fixed = fixed + 1 end
    if is_rate or fixed <= BEST then
      t.rows[#t.rows + 1] = { each.policy, ("%.1f"):format(each.tokens_per_second), ("%.2f"):format(each.speedup),
                              ("%.2f"):format(each.tokens_per_pass) }
    end
  end
  return t
end

local function megabytes(bytes) return ("%.0f MB"):format(bytes / 1e6) end

-- Texts and tables for the terminal and the page, of a finished state. bytes: of the target's files.
function results.document(state, bytes)
  local memory = state.memory_bytes
  return {
    { text = "Tokens per second of a prompt (pp) and of generating without drafts (tg), by the number of tokens:" },
    { table = speeds(state, bytes) },
    { text = "A pass of the target that verifies several rows:" },
    { table = rows_table(state) },
    { text = ("Drafts on %d short texts, %d tokens each, without the prompts:"):format(state.texts, state.tokens) },
    { table = policy_table(state) },
    { text = ("Loaded in %.2f s; weights %s, caches %s, the process %s at most."):format(state.load_ms / 1e3,
      megabytes(memory.weights), megabytes(memory.caches), megabytes(memory.host)) },
  }
end

results.plain = tables.markdown

return results
