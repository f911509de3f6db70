-- Is there really nothing to tune in rate? Each of its numbers, in its file and in the parts of dt.policy that it uses,
-- is halved and doubled. Prints the speed, by the table of costs, relative to that with the original number.
--   dtrun run tests/bench/sensitivity.lua [--temps 0,0.8] [--prompts 10] [--cost-table FILE] [-m TARGET -md DRAFT]
--
-- The policy is assembled again with one number changed: the text of a part is put before the policy's own, and
-- replaces the part of dt.policy.
local dt = require "dt"
local HERE = arg[0]:match "^(.*/)" or "./"
local by_table = dofile(HERE .. "by_table.lua")

local opts = dt.args {
  costs = "table",
  doc = "measures how rate's speed changes when each of its numbers is halved or doubled",
  options = {
    { "prompts", 10, min = 1, max = 20, doc = "texts to continue, each with its own seed" },
    { "sets", many = "FILE.jsonl", doc = "sets of texts to use instead of novels; --prompts texts of each" },
    { "questions", nil, type = "string", doc = "a file of questions (.jsonl) to use instead of novels, in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "temps", "0,0.8", doc = "temperatures, separated by commas" },
    { "cost_table", nil, type = "string", doc = "a table of costs (dtrun run costs --json) instead of a measured one" },
  },
}
-- Each part comes after those that it requires.
local PARTS = { "loss_budget", "copies", "sources", "experts", "pass_costs", "pace", "guesses" }

local function read(path)
  local file <close> = assert(io.open(HERE .. "../../" .. path, "rb"))
  return file:read "a"
end

local files = { { name = "rate", text = read "policies/rate.lua" } }
for _, part in ipairs(PARTS) do
  files[#files + 1] = { name = part, text = read(("lua/dt/policy/%s.lua"):format(part)) }
end

-- The numbers of a text's constants: { name =, value =, first =, last = position in the text }.
local function numbers(text)
  local list = {}
  for at, names, values in text:gmatch "()\nlocal ([%u_][%u%d_, ]*) = ([^\n]*)" do
    local from, labels = at + #"\nlocal " + #names + #" = ", {}
    for name in names:gmatch "[%u%d_]+" do labels[#labels + 1] = name end
    local code = values:gsub("%s*%-%-.*", "")
    local n, derived = 0, code:find "%u" -- computed from other constants
    for first, number, last in (derived and "" or code):gmatch "()(%d[%d.]*)()" do
      n = n + 1
      local label = #labels > 1 and labels[n] or labels[1] .. (code:find "{" and "." .. n or "")
      list[#list + 1] = { name = label, value = number, first = from + first - 1, last = from + last - 2 }
    end
  end
  return list
end

-- The policy with the number at `place` of file `changed` replaced.
local function policy_with(changed, place, value)
  local out = { 'local policy = require "dt.policy"\n' }
  local function text_of(file)
    if file ~= changed then return file.text end
    return file.text:sub(1, place.first - 1) .. value .. file.text:sub(place.last + 1)
  end
  for i = 2, #files do
    local name = files[i].name
    local text = text_of(files[i]):gsub('require "dt%.policy%.([%l_]+)"', "policy.%1")
    out[#out + 1] = ("policy.%s = (function()\n%s\nend)()\n"):format(name, text)
  end
  out[#out + 1] = "local made = policy.guesses\n"
    .. "function policy.guesses(p, seq) return made(p, seq, policy.calibration(true), 1) end\n"
  out[#out + 1] = text_of(files[1]):gsub('local policy = require "dt.policy"\n', "")
  return table.concat(out)
end

local pair = by_table.load(opts)
local costs, times = dt.measure_costs(pair) -- or a failure
dt.check(costs, times)
local trace, prefixes = os.tmpname(), {}
for p, text in ipairs(by_table.texts(opts)) do prefixes[p] = dt.check(pair:prefix(text)) end

local function ms_of(source, temp)
  local ms = 0
  for p, prefix in ipairs(prefixes) do
    pair:forget()
    dt.check(pair:generate { policy = "rate.lua", source = source, prompt = prefix, tokens = opts.tokens,
                             ignore_eos = true, temp = temp, seed = p, trace = trace })
    ms = ms + by_table.ms(trace, costs, times, temp)
  end
  return ms
end

local temps, base = {}, {}
for temp in opts.temps:gmatch "[^,]+" do temps[#temps + 1] = assert(tonumber(temp), "temps: expected numbers") end
for i, temp in ipairs(temps) do base[i] = ms_of(policy_with(), temp) end

local function changed(file, place, factor)
  local now, cells = tonumber(place.value), {}
  local value = now * factor
  if now > 0.5 and now < 1 and factor > 1 then value = 1 - (1 - now) / factor end -- for a share, 1 - value is halved
  if math.type(now) == "integer" then value = math.max(1, math.ceil(value)) end
  for i, temp in ipairs(temps) do
    cells[i] = ("%+.1f %%"):format(100 * (base[i] / ms_of(policy_with(file, place, tostring(value)), temp) - 1))
  end
  return table.concat(cells, ", ")
end

print(("%d texts of %d tokens, temperatures %s, %s, by the table"):format(#prefixes, opts.tokens, opts.temps,
  pair.backend))
print "| constant | value | halved | doubled |\n|---|---|---|---|"
local count = 0
for _, file in ipairs(files) do
  for _, place in ipairs(numbers(file.text)) do
    count = count + 1
    print(("| %s: %s | %s | %s | %s |"):format(file.name, place.name, place.value, changed(file, place, 0.5),
      changed(file, place, 2)))
  end
end
print(("%d numbers"):format(count))
os.remove(trace)
