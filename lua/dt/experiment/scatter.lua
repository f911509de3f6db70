-- Accepted length by the summed probability of the verified nodes: CAST's figure 3, from traces.
local experiment = require "dt.experiment"
local json = require "dt.json"
local record = require "dt.record"
local shard = require "dt.shard"

local scatter = {}

local WIDTH = 0.5 -- width of the sum's bins

-- Adds a trace's iterations to bins[k] = { n =, accepted = }, k = floor(sum / WIDTH).
local function add_trace(bins, path)
  for line in io.lines(path) do
    local iteration = json.decode(line)
    if iteration and iteration.nodes then
      local sum, accepted = 0.0, 0
      for _, node in ipairs(iteration.nodes) do
        if node.kept then sum = sum + node.p end
        if node.accepted then accepted = accepted + 1 end
      end
      local k = sum // WIDTH
      bins[k] = bins[k] or { n = 0, accepted = 0 }
      bins[k].n, bins[k].accepted = bins[k].n + 1, bins[k].accepted + accepted
    end
  end
end

-- { { sum = the bin's middle, n = iterations, accepted = their accepted nodes }, .. }, sorted
local function sorted(bins)
  local list = json.array()
  for k, bin in pairs(bins) do list[#list + 1] = { sum = (k + 0.5) * WIDTH, n = bin.n, accepted = bin.accepted } end
  table.sort(list, function(a, b) return a.sum < b.sum end)
  return list
end

-- The label of traced runs: writing the trace takes time, so they are an arm of their own.
function scatter.label(arm) return "traced " .. experiment.label(arm) end

local function run_one(t, arm, prompt, file)
  local path, bins = os.tmpname(), {}
  t.pair:forget()
  local result, failure = t.pair:generate {
    policy = arm.policy, preset = arm.preset, params = arm.params, prompt = prompt.text, tokens = t.tokens[1],
    ignore_eos = t.generate.ignore_eos, trace = path }
  if result then add_trace(bins, path) end
  os.remove(path)
  if not result then return nil, failure.message, failure.kind end
  local traced = { label = scatter.label(arm), preset = arm.preset, params = arm.params }
  local run = experiment.run_of(traced, prompt, t.tokens[1], 1, result)
  run.probability = sorted(bins)
  local ok, message = file:append(run)
  return ok, message, "device"
end

-- Runs arm once per prompt with a trace, and adds the runs, each with its bins as `probability`, to the experiment
-- t.out, unless another shard has them. t: the argument of experiment.run; head: the head it returned.
function scatter.run(t, head, arm)
  local file, message, kind = record.open(t.out, head)
  if not file then return nil, message, kind end
  local done = {}
  for _, run in ipairs(file.runs) do
    if run.probability then done[run.prompt] = true end
  end
  for _, prompt in ipairs(t.prompts) do
    local ok = done[prompt.name] or not shard.own(head)[scatter.label(arm)]
    if not ok then ok, message, kind = run_one(t, arm, prompt, file) end
    if not ok then return nil, message, kind end
  end
  return { head = file.head, runs = file.runs }
end

return scatter
