-- Shared by benchmarks that estimate times from a table of costs: dofile(arg[0]:match "^(.*/)" .. "by_table.lua").
--
--   by_table.arms("rate, linear K=2, dynatree narrow")   -- { { label =, policy =, preset =, params = {} }, .. }
--   by_table.texts(opts)                                 -- novels, texts of --sets, or --questions in ChatML
--   by_table.ms(file, costs, times, temp)                -- the ms of a traced run, by a table; and its iterations
local dt = require "dt"
local experiment = require "dt.experiment"

local HERE = arg[0]:match "^(.*/)" or "./"
local CHATML = "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"

local by_table = {}

function by_table.arms(list)
  local arms = {}
  for text in list:gmatch "[^,]+" do
    local arm = { label = text:match "^%s*(.-)%s*$", params = {} }
    for word in text:gmatch "%S+" do
      local name, value = word:match "^([%w_]+)=(.+)$"
      if name then
        arm.params[name] = math.tointeger(tonumber(value)) or tonumber(value) or value
      elseif arm.policy then
        arm.preset = word
      else
        arm.policy = word
      end
    end
    arms[#arms + 1] = arm
  end
  return arms
end

-- opts may have prompts, sets and questions.
function by_table.texts(opts)
  local list = {}
  if opts.questions then
    for line in io.lines(opts.questions) do
      if #list < opts.prompts then list[#list + 1] = CHATML:format(assert(dt.json.decode(line)).prompt) end
    end
    return list
  end
  local files, of_set = {}, {}
  for p = 1, #opts.sets > 0 and 0 or opts.prompts do
    files[p] = ("%s../../scripts/prompts/novels/%02d.txt"):format(HERE, p)
  end
  for _, prompt in ipairs(dt.check(experiment.prompts { files = files, sets = opts.sets })) do
    of_set[prompt.set] = (of_set[prompt.set] or 0) + 1
    if of_set[prompt.set] <= opts.prompts then list[#list + 1] = prompt.text end
  end
  return list
end

-- A level of nodes that were drafted from is one pass. times: the second result of dt.measure_costs.
function by_table.ms(file, costs, times, temp)
  local ms, iterations = 0, {}
  local function sampling(rows, each) return temp > 0 and rows * each or 0 end
  for line in io.lines(file) do
    local iteration = dt.json.decode(line)
    local rows, depth, level = 1, { [0] = 0 }, {}
    for _, node in ipairs(iteration.nodes or {}) do
      local d = node.id == 0 and 0 or depth[node.parent] + 1
      depth[node.id] = d
      if node.kept then rows = rows + 1 end
      if node.confidence then level[d] = (level[d] or 0) + 1 end
    end
    local length = iteration.length
    if iteration.nodes then
      ms = ms + costs:target(rows, length, nil, iteration.experts_read) + sampling(rows, times.target_sample)
      iterations[#iterations + 1] = iteration
    end
    for d, n in pairs(level) do
      ms = ms + (d == 0 and costs:first(length) or costs:draft(n, length)) + sampling(n, times.draft_sample)
    end
  end
  return ms, iterations
end

-- Puts the table of --cost-table into opts.load, if the option is given.
function by_table.load(opts)
  if opts.cost_table then
    local file <close> = assert(io.open(opts.cost_table, "rb"))
    opts.load.costs = assert(dt.json.decode(file:read "a"))
  end
  return dt.check(dt.load(opts.load))
end

return by_table
