-- Means, deviations and bootstrap intervals of short lists of numbers. The same list always gives the same interval.
local statistics = {}

local RESAMPLES = 2000
local COVERAGE = 0.95
local FEWEST = 3 -- an interval needs at least this many numbers

-- The mean; nil for an empty list.
function statistics.mean(list)
  local sum = 0.0
  for _, x in ipairs(list) do sum = sum + x end
  if #list > 0 then return sum / #list end
end

-- The sample standard deviation (divisor n - 1); nil for fewer than two numbers.
function statistics.deviation(list)
  if #list < 2 then return nil end
  local mean, sum = statistics.mean(list), 0.0
  for _, x in ipairs(list) do sum = sum + (x - mean) ^ 2 end
  return math.sqrt(sum / (#list - 1))
end

-- The quantile q of a sorted list, interpolated linearly.
function statistics.quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local below = math.floor(at)
  local x = sorted[below]
  return at == below and x or x + (sorted[below + 1] - x) * (at - below)
end

-- How much wider Student's interval of a mean of n numbers is than that of the normal distribution, by the expansion of
-- Cornish and Fisher.
local function widening(n)
  local z, v = 1.959964, n - 1
  local t = z + (z ^ 3 + z) / (4 * v) + (5 * z ^ 5 + 16 * z ^ 3 + 3 * z) / (96 * v ^ 2)
    + (3 * z ^ 7 + 19 * z ^ 5 + 17 * z ^ 3 - 15 * z) / (384 * v ^ 3)
  return t / z * math.sqrt(n / v)
end

-- Returns the 95 % interval of the mean: low and high; nil for fewer than three numbers. It is the percentile bootstrap
-- interval (Efron 1979), widened for short lists, for which that is too narrow (Hesterberg 2015).
function statistics.interval(list)
  local n = #list
  if n < FEWEST then return nil end
  local state, means = 1, {} -- Knuth's MMIX generator, with a fixed seed; its high bits are the most random
  for r = 1, RESAMPLES do
    local sum = 0.0
    for _ = 1, n do
      state = state * 6364136223846793005 + 1442695040888963407
      sum = sum + list[(state >> 33) % n + 1]
    end
    means[r] = sum / n
  end
  table.sort(means)
  local mean, wider = statistics.mean(list), widening(n)
  local low, high = statistics.quantile(means, (1 - COVERAGE) / 2), statistics.quantile(means, (1 + COVERAGE) / 2)
  if low > 0 then return mean * (low / mean) ^ wider, mean * (high / mean) ^ wider end -- keeps them above 0
  return mean - (mean - low) * wider, mean + (high - mean) * wider
end

-- The statistics of a list, { n =, mean =, deviation =, low =, high =, least = }; nil for an empty list.
function statistics.describe(list)
  if #list == 0 then return nil end
  local low, high = statistics.interval(list)
  local least = math.huge
  for _, x in ipairs(list) do least = math.min(least, x) end
  return { n = #list, mean = statistics.mean(list), deviation = statistics.deviation(list), low = low, high = high,
           least = least }
end

return statistics
