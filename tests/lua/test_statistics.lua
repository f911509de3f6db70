-- dt.statistics.
local lu = require "luaunit"
local statistics = require "dt.statistics"

TestStatistics = {}

function TestStatistics.test_mean_and_deviation_of_known_numbers()
  local list = { 2, 4, 4, 4, 5, 5, 7, 9 }
  lu.assertEquals(statistics.mean(list), 5.0)
  lu.assertAlmostEquals(statistics.deviation(list), math.sqrt(32 / 7), 1e-12)
end

function TestStatistics.test_too_few_numbers_have_none()
  lu.assertNil(statistics.mean {})
  lu.assertNil(statistics.deviation { 3 })
  lu.assertNil(statistics.interval { 3 })
  lu.assertNil(statistics.describe {})
  lu.assertEquals(statistics.describe { 3 }, { n = 1, mean = 3.0, least = 3 })
  lu.assertEquals(statistics.describe({ 3, 1.5, 2 }).least, 1.5)
end

function TestStatistics.test_quantiles_lie_between_neighbours()
  local sorted = { 10, 20, 30, 40, 50 }
  lu.assertEquals(statistics.quantile(sorted, 0), 10)
  lu.assertEquals(statistics.quantile(sorted, 0.5), 30)
  lu.assertAlmostEquals(statistics.quantile(sorted, 0.9), 46, 1e-12)
  lu.assertEquals(statistics.quantile(sorted, 1), 50)
end

-- The mean of many numbers is nearly normal: its 95 % interval ends 1.96 standard errors from it.
function TestStatistics.test_the_bootstrap_agrees_with_the_normal_law()
  local list = {}
  for i = 1, 400 do list[i] = i end
  local low, high = statistics.interval(list)
  local reach = 1.96 * statistics.deviation(list) / math.sqrt(400)
  lu.assertAlmostEquals(low, 200.5 - reach, 0.1 * reach)
  lu.assertAlmostEquals(high, 200.5 + reach, 0.1 * reach)
end

function TestStatistics.test_an_interval_takes_three_numbers()
  lu.assertNil(statistics.interval { 1.0, 3.0 })
  lu.assertEquals({ statistics.interval { 2.0, 2.0, 2.0 } }, { 2.0, 2.0 })
end

-- Numbers from a seed: uniform in (0, 1), and normal (Box and Muller).
local function source(seed)
  local state = seed
  local function uniform()
    state = state * 6364136223846793005 + 1442695040888963407
    return ((state >> 11) + 0.5) / 2.0 ^ 53
  end
  return uniform, function() return math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform()) end
end

-- How many of 1000 intervals of lists of n numbers hold their true mean.
local function coverage(n, draw, truth)
  local held = 0
  for _ = 1, 1000 do
    local list = {}
    for i = 1, n do list[i] = draw() end
    local low, high = statistics.interval(list)
    if low <= truth and truth <= high then held = held + 1 end
  end
  return held
end

-- Speeds of texts, whose mean is known; and ratios of two policies' speeds on the same text, where the text makes both
-- fast or slow and each ratio is 1.3 on average: the text cancels.
function TestStatistics.test_intervals_of_means_and_of_paired_ratios_hold_the_truth_in_92_to_98_of_100()
  local _, normal = source(7)
  local function speed() return 100 + 20 * normal() end
  local function ratio()
    local text = 100 * math.exp(0.5 * normal())
    return text * 1.3 * math.exp(0.2 * normal() - 0.2 ^ 2 / 2) / text
  end
  for _, n in ipairs { 3, 5, 10 } do
    for _, case in ipairs { { "means", speed, 100 }, { "ratios", ratio, 1.3 } } do
      local name, draw, truth = table.unpack(case)
      local held = coverage(n, draw, truth)
      lu.assertTrue(held >= 920 and held <= 980, ("%s of %d: %d of 1000"):format(name, n, held))
    end
  end
end

function TestStatistics.test_the_same_list_has_the_same_interval()
  local list = { 1.2, 1.5, 1.1, 1.9, 1.4 }
  lu.assertEquals({ statistics.interval(list) }, { statistics.interval(list) })
end

os.exit(lu.LuaUnit.run())
