-- Measures what a first run with a draft should know: how often its guesses and copies of the text are right, and how
-- its probabilities must be calibrated, greedily and at temperature 0.8, on questions that it was trained on, not on
-- those it is judged by.
-- Writes calibration.json, with which new pairs of that draft begin (models/HEADS.md).
--
--   XDG_CACHE_HOME=$(mktemp -d) dtrun run scripts/training/calibrate_head.lua -m TARGET -md HEAD --questions FILE.jsonl
--     [--tokens 200] [--out HEAD/calibration.json]
local dt = require "dt"

local opts = dt.args {
  doc = "measures what a first run with a draft head should know",
  options = {
    { "questions", nil, type = "string", doc = "a file of lines with a member prompt" },
    { "tokens", 200, short = "n", min = 16, max = 2000, doc = "tokens of each answer" },
    { "out", nil, type = "string", doc = "the file to write (calibration.json in the draft's folder)" },
  },
}
local cache = os.getenv "XDG_CACHE_HOME"
dt.check(cache and cache ~= "" or nil, "calibrate_head: XDG_CACHE_HOME must name an empty folder")
dt.check(opts.questions, "calibrate_head: give --questions FILE.jsonl")

local WAYS = { greedy = 0.0, sampled = 0.8 }

local SENT = 9 -- numbers of policy.calibration in what rate keeps of guesses

local prompts, right = {}, {}
for line in io.lines(opts.questions) do prompts[#prompts + 1] = assert(dt.json.decode(line)).prompt end
local draft
do
  local pair <close> = dt.check(dt.load(opts.load))
  draft = dt.check(pair.draft, "calibrate_head: there is no draft").path
  for way, temp in pairs(WAYS) do
    local function answer(seed, prompt, policy, params)
      return dt.check(pair:generate { policy = policy, params = params, tokens = opts.tokens, temp = temp, seed = seed,
                                      messages = { { role = "user", content = prompt } } }).stats
    end
    local verified, accepted = 0, 0
    for seed, prompt in ipairs(prompts) do
      answer(seed, prompt, "rate")
      local chain = answer(seed, prompt, "linear", { K = 1 })
      verified, accepted = verified + chain.drafted, accepted + chain.accepted
    end
    right[way] = accepted / verified
    print(("%s: %d answers, %.3f of the first guesses were right"):format(way, #prompts, right[way]))
  end
end

-- Four digits of each number.
local function rounded(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = tonumber(("%.4g"):format(x)) end
  return out
end

local found = { schema = "dtrun.calibration/2" }
for name in assert(io.popen(("ls '%s'/dtrun/ledger-*.json"):format(cache))):lines() do
  local file <close> = assert(io.open(name))
  local ledger = assert(dt.json.decode(file:read "a"))
  local way = ledger.key:find(", greedy,", 1, true) and "greedy" or "sampled"
  local lists = {}
  for key, list in pairs(ledger.books[#ledger.books].lists) do
    if key == "guesses1" then list = table.move({ right[way] }, 1, 1, SENT + 1, table.move(list, 1, SENT, 1, {})) end
    if key ~= "loss_budget" then lists[key] = rounded(list) end -- the loss budget belongs to the pair
  end
  found[way] = lists
end
dt.check(found.greedy and found.sampled, "calibrate_head: no ledger was written")
local out = opts.out or draft .. "/calibration.json"
local file <close> = assert(io.open(out, "w"))
file:write(dt.json.encode(found), "\n")
print(out)
