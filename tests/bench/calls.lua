-- Calls of tools: whether all are complete and the same under every policy, tokens per pass, and the speed over plain
-- decoding of the same calls, compared with what forced text alone allows.
--   dtrun run tests/bench/calls.lua [--questions 5] [--tools 20] [--temps 0,1] [--calls FILE] [-m MODEL] [-md DRAFT]
--
-- Each question of scripts/prompts/tools/mcp.jsonl is asked with its tool and the next two, one of which must be
-- called. Times are counted by the table of costs, which shows no noise, and by the clock, in turns. The bound: a text
-- is cut into passes such that each commits a token and some of the forced tokens before it (tree:forced says which),
-- and the passes take the least time by the table. tests/golden/check_arguments.py checks the calls in FILE.
local dt = require "dt"
local HERE = arg[0]:match "^(.*/)" or "./"
local by_table = dofile(HERE .. "by_table.lua")

local opts = dt.args {
  costs = "table",
  doc = "speeds of calls of tools under policies, compared with what forced text allows",
  options = {
    { "questions", 5, min = 1, max = 5, doc = "questions of each tool" },
    { "tools", 20, min = 3, max = 20, doc = "tools" },
    { "tokens", 400, short = "n", min = 2, max = 4000, doc = "maximum number of tokens of a call" },
    { "temps", "0,1", type = "string", doc = "temperatures" },
    { "calls", nil, type = "string", doc = "a file for the calls, as JSON lines" },
    { "cost_table", nil, type = "string", doc = "a table of costs (dtrun run costs --json) instead of a measured one" },
  },
}
-- Plain decoding whose trace says for each token whether it was the token that tree:forced had named.
local PROBE = [[
local policy = require "dt.policy"
local Probe = policy.define { name = "probe", uses = { draft = false } }
function Probe:draft(tree) self.named = tree:forced(tree.root) end
function Probe:observe(tree, out)
  local seq = tree.seq
  seq:log("forced", self.named and seq:token(seq:length()) == self.named and 1 or 0)
end
return Probe]]
local ARMS = { { policy = "ar" }, { policy = HERE .. "forced.lua" }, { policy = "rate" }, { policy = "linear" },
               { policy = "dynatree" } }

local function read_tools()
  local list = {}
  for line in io.lines(HERE .. "../../scripts/prompts/tools/mcp.jsonl") do
    -- the tool as it is written, since a Lua table does not keep the order of properties
    list[#list + 1] = { json = line:match '^{"tool": (.*), "questions"', questions = dt.json.decode(line).questions }
    if #list == opts.tools then break end
  end
  return list
end

-- The least time of a text by the table: flags[i]: token i is forced. costs: of a pass over n rows.
local function bound(flags, cost)
  local best, most = { [#flags + 1] = 0 }, 32
  for i = #flags, 1, -1 do
    local least = math.huge
    for rows = 1, most do -- tokens i .. i + rows - 1, of which all but the first or the last are forced
      local last = i + rows - 1
      if last > #flags or (rows > 1 and not flags[last - 1]) then break end
      least = math.min(least, cost(rows) + best[last + 1])
    end
    best[i] = least
  end
  return best[1]
end

local pair = by_table.load(opts)
local costs, times = dt.measure_costs(pair)
dt.check(costs, times)
local file, tools = os.tmpname(), read_tools()
local out = opts.calls and assert(io.open(opts.calls, "w"))
local sums = {}
for i = 1, #ARMS do sums[i] = { passes = 0, ms = 0, seconds = 0 } end
local made, forced, least, calls, cut = 0, 0, 0, 0, 0

local function generate(arm, prefix, temp, seed)
  return dt.check(pair:generate { policy = arm.policy, source = arm.source, prompt = prefix, tokens = opts.tokens,
                                  temp = temp, seed = seed, trace = file })
end

local function probe(prefix, temp, seed)
  local flags = {}
  generate({ policy = "probe", source = PROBE }, prefix, temp, seed)
  for line in io.lines(file) do
    local log = dt.json.decode(line).log
    if log then flags[#flags + 1] = log.forced == 1 end
  end
  return flags
end

local function clock_ms(result)
  local t = result.stats.time_ms
  return t.draft + t.verify + t.commit + t.policy + t.other
end

local function ask(prefix, list, temp, seed)
  local plain
  for i, arm in ipairs(ARMS) do
    pair:forget()
    local result = generate(arm, prefix, temp, seed)
    plain = plain or result
    assert(result.stats.output_hash == plain.stats.output_hash, arm.policy .. " changed a call")
    sums[i].passes = sums[i].passes + result.stats.iterations
    sums[i].ms, sums[i].seconds = sums[i].ms + by_table.ms(file, costs, times, temp), sums[i].seconds + clock_ms(result)
  end
  local flags, length = probe(prefix, temp, seed), #plain.prompt_ids
  local function cost(rows) return costs:target(rows, length) + (temp > 0 and rows * times.target_sample or 0) end
  for _, flag in ipairs(flags) do forced = forced + (flag and 1 or 0) end
  made, least, calls = made + #plain.tokens, least + bound(flags, cost), calls + 1
  if plain.finish_reason == "length" then cut = cut + 1 end
  if out then
    out:write(('{"tools": %s, "finish_reason": "%s", "message": %s}\n'):format(list, plain.finish_reason,
      dt.json.encode(plain.message)))
  end
end

for t = 1, #tools do
  local three = {}
  for k = 0, 2 do three[k + 1] = tools[(t + k - 1) % #tools + 1].json end
  for q = 1, opts.questions do
    local list = "[" .. table.concat(three, ", ") .. "]"
    local prefix = dt.check(pair:prefix({ { role = "user", content = tools[t].questions[q] } }, {
      tools = list, tool_choice = "required", parallel_tool_calls = false }))
    for temp in opts.temps:gmatch "[^,]+" do ask(prefix, list, tonumber(temp), q) end
  end
end
os.remove(file)
if out then out:close() end

local said = "%d calls of %.1f tokens, the same under every policy, %d cut at %d tokens; %.0f %% of the tokens forced"
print(said:format(calls, made / calls, cut, opts.tokens, 100 * forced / made))
print "policy,tokens_per_pass,speed_by_table,speed_by_clock,share_of_bound"
for i, arm in ipairs(ARMS) do
  print(("%s,%.2f,%.3f,%.3f,%.3f"):format(arm.policy:match "([%w_]+)%.?l?u?a?$", made / sums[i].passes,
    sums[1].ms / sums[i].ms, sums[1].seconds / sums[i].seconds, least / sums[i].ms))
end
print(("the bound of forced text,-,%.3f,-,1.000"):format(sums[1].ms / least))
pair:close()
