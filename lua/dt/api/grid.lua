-- Returns a list of tables, all combinations of the values of each key, as in {K = {4, 8}, tau = {from = 0.1, to = 0.3,
-- step = 0.1}}. Keys are sorted; the last one varies fastest.

local function values_of(key, given)
  if type(given) ~= "table" then
    error(("dt.grid: %s is a %s, not a list or {from=, to=, step=}"):format(key, type(given)), 3)
  end
  if given.from == nil and given.to == nil and given.step == nil then
    if #given == 0 then error(("dt.grid: %s is an empty list"):format(key), 3) end
    return given
  end
  local from, to, step = given.from, given.to, given.step or 1
  if not (math.type(from) and math.type(to) and math.type(step)) or step == 0 then
    error(("dt.grid: %s needs numbers from and to, and a step that is not 0"):format(key), 3)
  end
  local values = {}
  for i = 0, math.floor((to - from) / step + 1e-9) do
    local value = from + i * step
    values[i + 1] = math.type(value) == "float" and tonumber(("%.12g"):format(value)) + 0.0 or value -- 0.3, not 0.1 * 3
  end
  if #values == 0 then error(("dt.grid: %s: there is no value between %s and %s"):format(key, from, to), 3) end
  return values
end

return function(t)
  local keys, lists = {}, {}
  for key, given in pairs(t) do
    if type(key) ~= "string" then error("dt.grid: keys must be names", 2) end
    keys[#keys + 1] = key
    lists[key] = values_of(key, given)
  end
  table.sort(keys)
  local points = { {} }
  for _, key in ipairs(keys) do
    local longer = {}
    for _, point in ipairs(points) do
      for _, value in ipairs(lists[key]) do
        local copy = { [key] = value }
        for k, v in pairs(point) do copy[k] = v end
        longer[#longer + 1] = copy
      end
    end
    points = longer
  end
  return points
end
