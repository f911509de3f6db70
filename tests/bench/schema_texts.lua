-- Texts under schemas of others: whether they end, and whether they are the same under every policy.
-- dtrun run tests/bench/schema_texts.lua --schemas FOLDER [--count 60] [--tokens 2000] [--seeds 1] [--texts FILE]
--   [-m MODEL]
--
-- FOLDER is maskbench/data of github.com/guidance-ai/jsonschemabench, whose files have a "schema". COUNT of them are
-- taken, spread evenly over the sorted names; where one is refused, the next takes its place. A text is the answer in a
-- chat that shows the beginning of the schema. With more seeds, it is the first one that ends.
-- tests/golden/check_texts.py checks the texts in FILE.
local dt = require "dt"

local opts = dt.args {
  doc = "texts under schemas of others",
  options = {
    { "schemas", "maskbench/data", doc = "a folder of JSON files, each with a schema" },
    { "count", 60, min = 1, max = 20000, doc = "number of schemas" },
    { "tokens", 2000, short = "n", min = 2, max = 4000, doc = "maximum number of tokens of a text" },
    { "temp", 1, type = "number", min = 0, max = 100, doc = "temperature; text i is sampled with seed i" },
    { "seeds", 1, min = 1, max = 1000, doc = "number of seeds (i, i + 100000, ..) that are tried until a text ends" },
    { "shown", 2000, min = 0, max = 100000, doc = "bytes of a schema that the chat shows" },
    { "texts", nil, type = "string", doc = "a file for the texts and their schemas, as JSON lines" },
  },
}
local POLICIES = { "ar", "rate", "dynatree" }
local ASK = "Write a short JSON document that is valid under this schema:\n"
local DEEPER = { ["{"] = 1, ["["] = 1, ["}"] = -1, ["]"] = -1 }

local function after_string(text, i)
  repeat
    i = text:find('["\\]', i + 1)
    local escape = text:sub(i, i) == "\\"
    if escape then i = i + 1 end
  until not escape
  return i + 1
end

local function after_value(text, i)
  local depth = 0
  repeat
    local char = text:sub(i, i)
    depth = depth + (DEEPER[char] or 0)
    i = char == '"' and after_string(text, i) or text:match("^[%w.+-]+()", i) or i + 1
  until depth == 0
  return i
end

-- The value of "schema" in a file, as it is written, since a Lua table does not keep the order of properties.
local function schema_of(text)
  local i = 1
  while true do
    local key = assert(text:find('"', i), "there is no schema")
    local colon = after_string(text, key)
    local value = text:match("^%s*:%s*()", colon)
    i = after_value(text, value)
    if text:sub(key, colon - 1) == '"schema"' then return text:sub(value, i - 1) end
  end
end

local function read(path)
  local file = dt.check(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local names = {}
for name in io.popen(("LC_ALL=C ls '%s'"):format(opts.schemas)):lines() do
  if name:find "%.json$" then names[#names + 1] = name end
end
local pair = dt.check(dt.load(opts.load))
local out = opts.texts and dt.check(io.open(opts.texts, "w"))
local sums = { texts = 0, refused = 0, ended = 0, tokens = 0, differ = 0 }
local passes = { 0, 0, 0 }

-- The texts of all policies, with this seed or one of the next; nil if the schema is refused.
local function generate(schema, seed, left)
  local shown = schema:sub(1, opts.shown):gsub("[\xC2-\xF4][\x80-\xBF]*$", "") -- no part of a character
  local prefix = dt.check(pair:prefix { { role = "user", content = ASK .. shown } })
  local results = {}
  for i, policy in ipairs(POLICIES) do
    pair:forget()
    local fine, result = pcall(pair.generate, pair, { policy = policy, prompt = prefix, json_schema = schema,
                                                      tokens = opts.tokens, temp = opts.temp, seed = seed })
    if not fine and tostring(result):find("JSON schema", 1, true) then return nil, result end
    assert(fine, result)
    results[i] = dt.check(result)
    if i == 1 and left > 1 and result.finish_reason ~= "eos" then
      return generate(schema, seed + 100000, left - 1)
    end
  end
  return results
end

local function report(name, schema, results)
  local plain, same = results[1], true
  for i, result in ipairs(results) do
    same = same and result.stats.output_hash == plain.stats.output_hash and result.text == plain.text
      and result.finish_reason == plain.finish_reason
    passes[i] = passes[i] + result.stats.iterations
  end
  local ended = plain.finish_reason == "eos"
  sums.texts, sums.tokens = sums.texts + 1, sums.tokens + #plain.tokens
  sums.ended, sums.differ = sums.ended + (ended and 1 or 0), sums.differ + (same and 0 or 1)
  print(("%s,%d,%s,%s"):format(name, #plain.tokens, plain.finish_reason, same and "yes" or "NO"))
  if out then
    local line = '{"name": %s, "ended": %s, "text": %s, "schema": %s}\n' -- a line break in JSON is white space
    out:write(line:format(dt.json.encode(name), ended, dt.json.encode(plain.text), (schema:gsub("[\r\n]", " "))))
    out:flush()
  end
end

print "schema,tokens,finish_reason,same_under_every_policy"
local last = 0
for t = 1, opts.count do
  local n, done = math.max(last + 1, 1 + (t - 1) * #names // opts.count), false
  while names[n] and not done do
    local schema = schema_of(read(opts.schemas .. "/" .. names[n]))
    local results, refusal = generate(schema, t, opts.seeds)
    done = results ~= nil
    if results then
      report(names[n], schema, results)
    else
      sums.refused = sums.refused + 1
      print(("%s is refused: %s"):format(names[n], refusal))
    end
    last, n = n, n + 1
  end
end
if out then out:close() end
pair:close()
local said = "%d texts of %.1f tokens, %d ended within %d tokens, %d differ between policies; %d schemas were refused"
print(said:format(sums.texts, sums.tokens / sums.texts, sums.ended, opts.tokens, sums.differ, sums.refused))
print "policy,tokens_per_pass"
for i, policy in ipairs(POLICIES) do print(("%s,%.2f"):format(policy, sums.tokens / passes[i])) end
os.exit(sums.differ == 0)
