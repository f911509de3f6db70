-- Texts that contain marks end like those of plain decoding, with every policy, alone and in batches. Marks are stop
-- strings, the end of an answer (a token, or its text if the tokenizer has no such token), and texts in schemas and
-- grammars that spell one.
-- dtrun run tests/exact/marks.lua [--tokens 40]
local dt = require "dt"

local opts = dt.args {
  doc = "compares the ends of texts that hold marks with those of plain decoding",
  options = { { "tokens", 40, short = "n", min = 16, max = 1000, doc = "tokens of a text, at most" } },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local POLICIES = { "linear", "dynatree", "rate", "suffix", HERE .. "hostile/random_trees.lua",
                   HERE .. "hostile/forced.lua" }
local TEMPS = { 0, 1.2 }

-- The likeliest tokens in turn, over and over, when nothing else is as likely: < / s >
local SPELLS = { logit_bias = { { "<", 1000 }, { "/", 960 }, { "s", 920 }, { ">", 880 } }, presence_penalty = 100,
                 frequency_penalty = 100 }
local LIKELY = { { "<", 7 }, { "/", 6 }, { "s", 6 }, { ">", 7 }, { "|", 5 } } -- marks in texts that need none

local function with(base, more)
  local t = {}
  for key, value in pairs(base) do t[key] = value end
  for key, value in pairs(more) do t[key] = value end
  return t
end

-- The options of each text, the whole text if it is known, and how it ends (`ends`).
local CASES = {
  { ask = with(SPELLS, {}), spells = true },
  { ask = with(SPELLS, { stop = { "/s", "zzz" } }), text = "<", ends = "stop" },
  { ask = with(SPELLS, { stop = { "><" } }), marked = { text = "</s", ends = "stop" },
    plain = { text = "", ends = "stop" } },
  { ask = with(SPELLS, { ignore_eos = true }), ends = "length" },
  { ask = { logit_bias = LIKELY, stop = { "</", "|>" } } },
  { ask = { logit_bias = LIKELY, stop = { "<|im_end|>", "\n" } } },
  { ask = { grammar = 'root ::= "use </s> here, <|im_end|> there"' }, text = "use </s> here, <|im_end|> there",
    ends = "eos" },
  { ask = { grammar = 'root ::= ("<" | "/" | "s" | ">" | [a-c]){6,12} "</s>"', logit_bias = LIKELY },
    pattern = "</s>$" },
  { ask = { grammar = 'root ::= "a</s>b<|im_end|>c"', stop = { "<|im_end|>" } }, text = "a</s>b", ends = "stop" },
  { ask = { json_schema = '{"const": "use </s> here"}' }, text = '"use </s> here"', ends = "eos" },
  { ask = { json_schema = '{"enum": ["<p>one</p></s>", "<|im_end|>", "</s>"]}' }, json = true },
  { ask = { json_schema = [[{"type": "object", "properties": {"</s>": {"type": "string", "maxLength": 6}},
                             "required": ["</s>"]}]], logit_bias = LIKELY }, pattern = '^{%s*"</s>"' },
  { ask = { json_schema = '{"type": "array", "items": {"const": "</s>"}, "minItems": 2, "maxItems": 3}' },
    json = true },
}
local QUESTION = { { role = "system", content = "Say </s> and <|im_end|>." }, { role = "user", content = "The dog?" } }
local OTHERS = { { { role = "user", content = "What is </s>?" } },
                 { { role = "user", content = "It was a dark night, and" } } }

local folder = os.tmpname()
os.remove(folder)
local COPY = "mkdir %s && cp -r %s %s && cp -r %s %s && sed -i 's#<|padding|>#</s>#' %s/*/tokenizer.json"
assert(os.execute(COPY:format(
  folder, HERE .. "../../models/mini-target", folder, HERE .. "../../models/mini-draft", folder, folder)))
local PAIRS = {
  { name = "no token", target = HERE .. "../../models/mini-target", draft = HERE .. "../../models/mini-draft" },
  { name = "a token", target = folder .. "/mini-target", draft = folder .. "/mini-draft", marked = true },
}

local sum = { texts = 0, compared = 0, accepted = 0, ends = {}, mistakes = 0 }
local function wrong(label, what)
  sum.mistakes = sum.mistakes + 1
  print(("  WRONG: %s: %s"):format(label, what))
end

local function check(case, label, result, marked)
  sum.texts = sum.texts + 1
  sum.ends[result.finish_reason] = (sum.ends[result.finish_reason] or 0) + 1
  local known = (marked and case.marked) or (not marked and case.plain) or case
  if known.text and result.text ~= known.text then wrong(label, ("the text %q"):format(result.text)) end
  if known.ends and result.finish_reason ~= known.ends then wrong(label, "it ends by " .. result.finish_reason) end
  if case.spells and (result.text == "") == (marked or false) then wrong(label, ("the text %q"):format(result.text)) end
  if result.finish_reason ~= "eos" then return end
  if case.pattern and not result.text:find(case.pattern) then wrong(label, ("the text %q"):format(result.text)) end
  if case.json and not pcall(dt.json.decode, result.text) then wrong(label, ("no JSON: %q"):format(result.text)) end
end

local function same(label, result, plain)
  sum.compared, sum.accepted = sum.compared + 1, sum.accepted + result.stats.accepted
  if dt.json.encode(result.tokens) ~= dt.json.encode(plain.tokens) then wrong(label, "other tokens") end
  if result.text ~= plain.text or result.finish_reason ~= plain.finish_reason then wrong(label, "another end") end
end

for _, models in ipairs(PAIRS) do
  local pair = assert(dt.load(with(opts.load, { target = models.target, draft = models.draft })))
  for i, case in ipairs(CASES) do
    for t, temp in ipairs(case.spells and { 0 } or TEMPS) do
      local function asked(more)
        return with(with({ template = "zephyr", tokens = opts.tokens, temp = temp, seed = i }, case.ask), more)
      end
      local label = ("%s, case %d, temperature %g"):format(models.name, i, temp)
      local plain = assert(pair:generate(asked { policy = "ar", messages = QUESTION }))
      check(case, label, plain, models.marked)
      for _, policy in ipairs(POLICIES) do
        same(label .. ", " .. policy, assert(pair:generate(asked { policy = policy, messages = QUESTION })), plain)
      end
      local all, prompts = { plain }, { QUESTION, table.unpack(OTHERS) }
      for k, prompt in ipairs(OTHERS) do
        all[k + 1] = assert(pair:generate(asked { policy = "ar", messages = prompt, seed = i + k }))
      end
      local policy = POLICIES[(i + t) % #POLICIES + 1]
      local batch = asked { policy = policy, prompts = prompts, slots = 1 + t % 3 }
      local results, failures = assert(pair:generate_batch(batch))
      assert(next(failures) == nil, select(2, next(failures)))
      for k, result in ipairs(results) do same(("%s, %d of a batch of %s"):format(label, k, policy), result, all[k]) end
    end
  end
  pair:close()
end
os.execute("rm -r " .. folder)
local ends = {}
for i, reason in ipairs { "eos", "stop", "length" } do ends[i] = ("%d %s"):format(sum.ends[reason] or 0, reason) end
local FORM = "%d texts (%s); %d compared, %d guesses accepted, %d mistakes"
print(FORM:format(sum.texts, table.concat(ends, ", "), sum.compared, sum.accepted, sum.mistakes))
local all_ends = sum.ends.eos and sum.ends.stop and sum.ends.length
os.exit(sum.mistakes == 0 and sum.accepted > 0 and all_ends ~= nil)
