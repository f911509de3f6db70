-- Texts under schemas and grammars are plain decoding's under every policy, alone and in batches, and most of them end.
-- tests/golden/check_schemas.py makes the cases and checks what is written.
-- dtrun run tests/exact/schemas.lua --cases FILE --texts FILE [--stride 1] [-m MODEL] [-md DRAFT]
--
-- A line of a case: {"prompt": TEXT, "json_schema": TEXT} or {"prompt": TEXT, "grammar": TEXT}. A line of a text: the
-- case's number, its temperature, the text and whether it ended.
local dt = require "dt"

local opts = dt.args {
  doc = "compares texts under schemas and grammars",
  options = {
    { "cases", nil, type = "string", doc = "a file of cases, one a line" },
    { "texts", nil, type = "string", doc = "where texts are written" },
    { "tokens", 400, short = "n", min = 1, max = 4000, doc = "tokens of a text, at most" },
    { "stride", 1, min = 1, max = 3, doc = "3: every case at one temperature only" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local TEMPS = { 0, 1, 2 }
local MORE = { "It was a dark night, and", "The record of the day: " } -- further prompts in the batch of a case

local out = assert(io.open(opts.texts, "w"))
local pair = assert(dt.load(opts.load))
local policies = { "rate", HERE .. "hostile/forced.lua" }
if pair.draft then
  policies = { "linear", "dynatree", "rate", HERE .. "hostile/forced.lua", HERE .. "hostile/random_trees.lua" }
end
local sum = { texts = 0, compared = 0, ended = 0, tokens = 0, accepted = 0, passes = 0, mistakes = 0 }

local function same(case, temp, label, result, plain)
  sum.compared, sum.accepted = sum.compared + 1, sum.accepted + result.stats.accepted
  sum.passes = sum.passes + result.stats.iterations
  if result.stats.output_hash == plain.stats.output_hash and result.text == plain.text
    and result.finish_reason == plain.finish_reason then return end
  sum.mistakes = sum.mistakes + 1
  print(("  WRONG: case %d, temperature %g, %s"):format(case, temp, label))
end

local number = 0
for line in io.lines(opts.cases) do
  number = number + 1
  local case = assert(dt.json.decode(line))
  for t, temp in ipairs(TEMPS) do
    if (number + t) % opts.stride == 0 then
      local function asked(more)
        local request = { tokens = opts.tokens, temp = temp, seed = number, grammar = case.grammar,
                          json_schema = case.json_schema }
        for key, value in pairs(more) do request[key] = value end
        return request
      end
      local function plain_of(prompt, seed)
        local result = assert(pair:generate(asked { policy = "ar", prompt = prompt, seed = seed }))
        local ended = result.finish_reason == "eos"
        sum.texts, sum.ended = sum.texts + 1, sum.ended + (ended and 1 or 0)
        sum.tokens = sum.tokens + #result.tokens
        out:write(dt.json.encode { case = number, temp = temp, text = result.text, ended = ended }, "\n")
        return result
      end
      local plain = plain_of(case.prompt, number)
      for _, policy in ipairs(policies) do
        same(number, temp, policy, assert(pair:generate(asked { policy = policy, prompt = case.prompt })), plain)
      end
      local policy, all = policies[number % #policies + 1], { plain }
      for i, prompt in ipairs(MORE) do all[i + 1] = plain_of(prompt, number + i) end
      local batch = asked { policy = policy, prompts = { case.prompt, table.unpack(MORE) }, slots = 1 + number % 3 }
      local results, failures = assert(pair:generate_batch(batch))
      assert(next(failures) == nil, select(2, next(failures)))
      for i, result in ipairs(results) do same(number, temp, "batch of " .. policy, result, all[i]) end
    end
  end
end
out:close()
pair:close()
print(("%d texts, %d ended, %d tokens; %d compared, %.2f accepted a pass, %d mistakes"):format(
  sum.texts, sum.ended, sum.tokens, sum.compared, sum.accepted / sum.passes, sum.mistakes))
os.exit(sum.mistakes == 0 and sum.ended >= 0.9 * sum.texts)
