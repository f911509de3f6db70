-- What a schema costs and gains: plain decoding with a schema of ten fixed keys, the same with guesses of forced text
-- only, and rate, alternately. Then the time of a pass of plain decoding without masks, with those of that schema, and
-- with those of a schema with free strings, nested lists and recursion.
-- dtrun run tests/bench/schemas.lua [--rounds 5] [-m MODEL] [-md DRAFT]
local dt = require "dt"
local HERE = arg[0]:match "^(.*/)" or "./"

local opts = dt.args {
  doc = "speeds and times of passes under schemas",
  options = {
    { "rounds", 5, min = 1, max = 99, doc = "runs of each, alternating" },
    { "tokens", 400, short = "n", min = 2, max = 4000, doc = "maximum number of tokens of a text" },
    { "temp", 0, type = "number", min = 0, max = 100, doc = "temperature" },
  },
}
local KEYS = [[{"type": "object", "properties": {
  "customer_name": {"type": "string", "maxLength": 24}, "email_address": {"type": "string", "maxLength": 30},
  "phone_number": {"type": "string", "maxLength": 16}, "date_of_birth": {"type": "string", "maxLength": 12},
  "street_address": {"type": "string", "maxLength": 30}, "postal_code": {"type": "integer"},
  "country_code": {"enum": ["AT", "BE", "CH", "DE", "FR", "NL", "PL"]}, "order_quantity": {"type": "integer"},
  "is_returning_customer": {"type": "boolean"}, "preferred_language": {"type": "string", "maxLength": 10}},
  "required": ["customer_name", "email_address", "phone_number", "date_of_birth", "street_address", "postal_code",
    "country_code", "order_quantity", "is_returning_customer", "preferred_language"]}]]
local HARD = [[{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
  "text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string", "maxLength": 40}},
  "value": {"anyOf": [{"type": "number"}, {"type": "null"}, {"$ref": "#/$defs/node"}]},
  "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["text", "value", "children"]}}}]]
local PROMPTS = {
  "A record of a customer who ordered garden chairs, as JSON: ",
  "Here is the order of Maria Kowalska from Krakow in JSON format:\n",
  "The customer database has one entry per line. The first entry is:\n",
  "Fill in the form for a new client who lives in Lyon and bought a bicycle.\n",
}

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function run(pair, prompt, more)
  local request = { prompt = prompt, tokens = opts.tokens, temp = opts.temp, seed = 1 }
  for key, value in pairs(more) do request[key] = value end
  return assert(pair:generate(request))
end

local function seconds(result)
  local t = result.stats.time_ms
  return (t.draft + t.verify + t.commit + t.policy + t.other) / 1000
end

-- The milliseconds of a pass of plain decoding.
local function pass(result) return result.stats.time_ms.verify / result.stats.iterations end

local pair = dt.check(dt.load(opts.load))
local ARMS = { { policy = "ar" }, { policy = HERE .. "forced.lua" }, { policy = "rate" } }
for _, arm in ipairs(ARMS) do arm.json_schema = KEYS end
local ratios, made, passes = { {}, {}, {} }, { 0, 0, 0 }, { 0, 0, 0 }
for p, prompt in ipairs(PROMPTS) do
  local time = { {}, {}, {} }
  for round = 0, opts.rounds do -- the first round warms up and does not count
    local plain
    for k = 0, #ARMS - 1 do
      local i = (round + k) % #ARMS + 1
      local result = run(pair, prompt, ARMS[i])
      plain = plain or result.stats.output_hash
      assert(result.stats.output_hash == plain, "schemas: the tokens differ")
      if round > 0 then time[i][round] = seconds(result) end
      if round == 1 then
        made[i], passes[i] = made[i] + #result.tokens, passes[i] + result.stats.iterations
      end
    end
  end
  for i in ipairs(ARMS) do ratios[i][p] = median(time[1]) / median(time[i]) end
end
print "policy,tokens,tokens_per_pass,speed_over_plain,least,most"
for i, arm in ipairs(ARMS) do
  table.sort(ratios[i])
  local sum = 0
  for _, r in ipairs(ratios[i]) do sum = sum + math.log(r) end
  print(("%s,%d,%.2f,%.3f,%.3f,%.3f"):format(arm.policy:match "(%w+)%.?l?u?a?$", made[i], made[i] / passes[i],
    math.exp(sum / #PROMPTS), ratios[i][1], ratios[i][#PROMPTS]))
end

local MASKS = { { "none" }, { "ten keys", KEYS }, { "free strings, nested, recursive", HARD } }
local times, over = { {}, {}, {} }, { {}, {}, {} }
for round = 0, 2 * opts.rounds do
  local now = {}
  for k = 1, #MASKS do
    local i = (round + k) % #MASKS + 1
    now[i] = pass(run(pair, PROMPTS[round % #PROMPTS + 1], {
      policy = "ar", json_schema = MASKS[i][2], ignore_eos = not MASKS[i][2], tokens = math.min(opts.tokens, 120) }))
  end
  for i in ipairs(MASKS) do
    if round > 0 then times[i][round], over[i][round] = now[i], now[i] / now[1] end
  end
end
pair:close()
print "masks,pass_ms,ratio"
for i, mask in ipairs(MASKS) do print(("%s,%.4f,%.4f"):format(mask[1], median(times[i]), median(over[i]))) end
