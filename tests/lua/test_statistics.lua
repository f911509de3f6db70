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
  lu.assertEquals(statistics.describe { 3 }, { n = 1, mean = 3.0 })
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

-- Two numbers, resampled: (a,a), (a,b), (b,a), (b,b) are equally frequent, so the interval is from a to b.
function TestStatistics.test_the_bootstrap_of_two_numbers_reaches_from_one_to_the_other()
  lu.assertEquals({ statistics.interval { 1.0, 3.0 } }, { 1.0, 3.0 })
  lu.assertEquals({ statistics.interval { 2.0, 2.0, 2.0 } }, { 2.0, 2.0 })
end

function TestStatistics.test_the_same_list_has_the_same_interval()
  local list = { 1.2, 1.5, 1.1, 1.9, 1.4 }
  lu.assertEquals({ statistics.interval(list) }, { statistics.interval(list) })
end

os.exit(lu.LuaUnit.run())
