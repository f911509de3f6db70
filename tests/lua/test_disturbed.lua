-- Costs that disturbed passes taught: on scripted pairs whose passes take their time by a clock that jumps ahead, so
-- that the machine's own load does not matter. After a random history of slow passes rate must be back, within 200
-- tokens, at nearly the speed that it has without them.
--   dtrun run tests/lua/test_disturbed.lua [HISTORIES [SEED]]
local lu = require "luaunit"
local dt = require "dt"

local TOKENS, MEASURED = 200, 500
local HISTORIES, SEED = tonumber(arg[1]) or 40, tonumber(arg[2]) or 71

-- A text without repeats (a few laps over all ids), of which the draft model guesses a token right with probability
-- `right`, and says how sure it is.
local function models(right, says)
  local draft, target, vocab = {}, {}, 700
  for t = 1, vocab do
    local next_token = t % vocab + 1
    target[tostring(t)] = { [next_token] = 1.0 }
    draft[tostring(t)] = { [math.random() < right and next_token or (t + 5) % vocab + 1] = says }
  end
  return draft, target, vocab + 1
end

-- Passes of this many milliseconds, so that what the scripted models really take is nothing.
local MS = 4000

local function scenario()
  local row, pass = 0.02 + 0.3 * math.random() ^ 2, 0.05 + 0.4 * math.random() ^ 2
  local s = { draft_ms = MS * pass, row_ms = MS * row, right = 0.3 + 0.65 * math.random() }
  s.draft, s.target, s.vocab = models(s.right, 0.5 + 0.4 * math.random())
  -- bytes of weights tell only roughly how long a pass takes
  s.bytes = { MS * 2e7 * 2 ^ (math.random() - 0.5), s.draft_ms * 2e7 * 2 ^ (math.random() - 0.5) }
  return s
end

-- Delays of up to 50 times: a busy start, busy periods, single passes that were put off, or the machine was suspended.
local function history()
  local list = {}
  local function slow(from, n, most) list[#list + 1] = { from, from + n - 1, 2 * (most / 2) ^ math.random() } end
  local kind = math.random(4)
  if kind == 1 or kind == 4 then slow(1, math.random(5, 150), 50) end
  if kind == 2 or kind == 4 then slow(math.random(20, 200), math.random(5, 100), 50) end
  for _ = 1, kind >= 3 and math.random(3, 40) or 0 do slow(math.random(1, 400), 1, 50) end
  if math.random() < 0.3 then slow(math.random(1, 300), 1, 5000) end
  return list
end

local function opened(s, delays)
  local times = { target = { MS, s.row_ms, s.bytes[1] }, draft = { s.draft_ms, s.draft_ms * 0.05, s.bytes[2] } }
  times.delays = delays
  return assert(dt.fake { vocab = s.vocab, context = 4000, eos = 0, draft = s.draft, target = s.target, times = times })
end

-- Milliseconds of a text by the clock, and its tokens.
local function run(pair, first, tokens)
  local result = assert(pair:generate { policy = "rate", prompt = " " .. first, tokens = tokens, ignore_eos = true })
  local time = result.stats.time_ms
  return time.draft + time.verify + time.commit, result
end

-- The last of the texts that a pair generates: 450 passes at most are disturbed, then 200 tokens are not.
local function last_text(s, delays)
  local pair <close> = opened(s, delays)
  for text = 1, 3 do run(pair, 1 + 150 * (text - 1), 150) end
  run(pair, 450, TOKENS)
  return run(pair, 100, MEASURED)
end

TestDisturbed = {}

function TestDisturbed.test_rate_is_back_at_its_speed_within_200_tokens_of_an_idle_machine()
  math.randomseed(SEED)
  local worst, sum, slow = math.huge, 0, 0
  for n = 1, HISTORIES do
    local s = scenario()
    local ms, mine = last_text(s, history())
    local right_ms, right = last_text(s, nil)
    lu.assertEquals(mine.tokens, right.tokens)
    local share = right_ms / ms
    worst, sum, slow = math.min(worst, share), sum + share / HISTORIES, slow + (share < 0.95 and 1 or 0)
    lu.assertTrue(share >= 0.9, ("history %d: %.3f of the speed, %.2fx plain; a row %.2f, a pass %.2f, %.2f right")
      :format(n, share, MS * MEASURED / right_ms, s.row_ms / MS, s.draft_ms / MS, s.right))
  end
  lu.assertTrue(slow <= HISTORIES // 40, slow) -- rate itself varies by a few percent with what it learned of guesses
  print(("%d histories: at least %.3f of the undisturbed speed, %.3f in the mean"):format(HISTORIES, worst, sum))
end

os.exit(lu.LuaUnit.run "TestDisturbed")
