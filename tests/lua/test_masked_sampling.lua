-- Texts sampled under a grammar have the distribution of plain decoding with masks: each token is sampled with the
-- target's probabilities among those that the grammar allows. A scripted pair, a grammar of nine texts, chi-square at
-- level 0.001.
local lu = require "luaunit"
local dt = require "dt"

local TEXTS = { "1 4 4 2", "1 4 4 3 5", "2 5", "2 3 3 3 1", "2 3 3 3 6", "3", "3 6 6 6 6",
                "6 1 2 3 4 5 1", "6 1 2 3 4 5 2" }
local SEEDS = 300
local EOS = 0
local OPTIONS = {
  vocab = 7, context = 40, eos = EOS,
  target = {
    [""] = { [0] = 0.1, [1] = 0.15, [2] = 0.25, [3] = 0.2, [4] = 0.1, [5] = 0.1, [6] = 0.1 },
    ["3"] = { [0] = 0.3, [1] = 0.05, [2] = 0.1, [3] = 0.2, [4] = 0.05, [5] = 0.2, [6] = 0.1 },
    ["4"] = { [0] = 0.05, [1] = 0.05, [2] = 0.2, [3] = 0.1, [4] = 0.3, [5] = 0.25, [6] = 0.05 },
  },
  draft = {
    [""] = { [0] = 0.1, [1] = 0.1, [2] = 0.2, [3] = 0.3, [4] = 0.1, [5] = 0.1, [6] = 0.1 },
    ["4"] = { [0] = 0.1, [1] = 0.1, [2] = 0.1, [3] = 0.4, [4] = 0.1, [5] = 0.1, [6] = 0.1 },
  },
  costs = { contexts = { 128 }, rows = { 1, 9 }, target = { { 1.0, 1.1 } }, draft = { { 0.1, 0.12 } },
            draft_first = { 0.1 } },
}

local function target_after(token) return OPTIONS.target[tostring(token)] or OPTIONS.target[""] end

-- The probability of each text. local_masks: each token is sampled among those allowed; otherwise whole texts are
-- sampled among all allowed texts, which is a different distribution.
local function law(temp, local_masks)
  local of, sum = {}, 0
  for _, text in ipairs(TEXTS) do
    local p, before, last = 1, "", 8
    for token in (text .. " " .. EOS):gmatch "%d" do
      local allowed, weights = {}, 0
      for _, other in ipairs(TEXTS) do
        other = other .. " " .. EOS
        if other:sub(1, #before) == before then allowed[tonumber(other:sub(#before + 1, #before + 1))] = true end
      end
      for id, q in pairs(target_after(last)) do
        if allowed[id] or not local_masks then weights = weights + q ^ (1 / temp) end
      end
      p = p * target_after(last)[tonumber(token)] ^ (1 / temp) / weights
      before, last = before .. token .. " ", tonumber(token)
    end
    of[text], sum = p, sum + p
  end
  for text, p in pairs(of) do of[text] = p / sum end
  return of, sum
end

local function chi_square(count, of)
  local x = 0
  for _, text in ipairs(TEXTS) do x = x + ((count[text] or 0) - of[text] * SEEDS) ^ 2 / (of[text] * SEEDS) end
  local a = 2 / (9 * (#TEXTS - 1)) -- Wilson and Hilferty's approximation
  return x, (#TEXTS - 1) * (1 - a + 3.0902 * a ^ 0.5) ^ 3
end

TestMaskedSampling = {}

for _, policy in ipairs { "ar", "linear", "dynatree", "rate" } do
  for _, temp in ipairs { 1, 2 } do
    TestMaskedSampling[("test_%s_at_temperature_%d"):format(policy, temp)] = function()
      local pair <close> = assert(dt.fake(OPTIONS))
      local count, accepted, rules, prompts = {}, 0, {}, {}
      for i, text in ipairs(TEXTS) do rules[i] = ('" %s"'):format(text) end
      for i = 1, SEEDS do prompts[i] = " 5 5" end -- each has a seed of its own
      local results, failures = pair:generate_batch {
        policy = policy, prompts = prompts, tokens = 12, temp = temp, seed = 1,
        grammar = "root ::= " .. table.concat(rules, " | ") }
      lu.assertEquals(failures, {})
      for _, result in ipairs(results) do
        lu.assertEquals(result.finish_reason, "eos")
        local text = table.concat(result.tokens, " ", 1, #result.tokens - 1)
        count[text], accepted = (count[text] or 0) + 1, accepted + result.stats.accepted
      end
      local of, sum = law(temp, true)
      lu.assertAlmostEquals(sum, 1, 1e-9)
      local x, critical = chi_square(count, of)
      lu.assertTrue(x < critical, ("chi-square %.1f, critical %.1f"):format(x, critical))
      x, critical = chi_square(count, (law(temp, false)))
      lu.assertTrue(x > critical, "the test does not see another law")
      lu.assertTrue(policy == "ar" or accepted > SEEDS / 4, accepted)
    end
  end
end

os.exit(lu.LuaUnit.run())
