-- Experiments in which every run has a process of its own. The peak memory of the process is then that of the run, and
-- a policy without a draft model loads none. Each run starts slowly and with cold caches, so speeds are lower.
local experiment = require "dt.experiment"
local json = require "dt.json"
local params = require "dt.policy.params"
local progress = require "dt.api.progress"
local record = require "dt.record"
local shell = require "dt.shell"

local alone = {}

-- The command line's names of dt.load's options.
local LOAD = { target = "--target", draft = "--draft", weights = "--weights", draft_weights = "--draft-weights",
               draft_vocab = "--draft-vocab", draft_output = "--draft-output", draft_window = "--draft-window",
               head_layers = "--head-layers",
               cache_dtype = "--cache-dtype", activations = "--activations", backend = "--backend",
               rope_scaling = "--rope-scaling", rope_scale = "--rope-scale", yarn_orig_ctx = "--yarn-orig-ctx",
               threads = "--threads", numa = "--numa", ctx = "--ctx" }

local function command(exe, arm, load, generate, tokens, prompt_file, result_file)
  local words = { exe, arm.policy, "-q", "-n", tostring(tokens), "--prompt", prompt_file, "--json", result_file }
  local function add(...) table.move({ ... }, 1, select("#", ...), #words + 1, words) end
  if arm.preset then add("--preset", arm.preset) end
  for name, value in pairs(arm.params or {}) do add("--set", name .. "=" .. params.text(value)) end
  for _, file in ipairs(load.corpus or {}) do add("--corpus", file) end
  for name, option in pairs(LOAD) do
    if load[name] ~= nil then add(option, tostring(load[name])) end
  end
  add("--costs", load.costs == "learn" and "learn" or "table") -- the default of experiments
  if generate.ignore_eos then add "--ignore-eos" end
  return words
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

local KINDS = { [2] = "input", [3] = "policy" } -- kinds of failures, by exit status

-- Returns the result of one run; or nil, a message and its kind.
local function result_of(exe, arm, load, generate, tokens, text)
  local prompt_file, result_file = os.tmpname(), os.tmpname()
  write(prompt_file, text)
  local words = command(exe, arm, load, generate, tokens, prompt_file, result_file)
  local status, said = shell("%s" .. (" %s"):rep(#words - 1) .. " >/dev/null", table.unpack(words))
  local file = io.open(result_file, "rb")
  local result = status == 0 and json.decode(file:read "a")
  file:close()
  os.remove(prompt_file)
  os.remove(result_file)
  if not result then return nil, said:gsub("^dtrun: ", ""):gsub("\n.*", ""), KINDS[status] or "device" end
  return result
end

local function run_one(t, load, exe, arm, prompt, tokens, file)
  local result, tries, why = experiment.measured(t.pair, true, function()
    return result_of(exe, arm, load, t.generate, tokens, prompt.text)
  end)
  if not result then return nil, ("%s, %s: %s"):format(arm.label, prompt.name, tries), why end
  local ok, failed, kind
  ok, failed, kind = experiment.check_source(arm, result)
  if not ok then return nil, failed, kind end
  local run = experiment.run_of(arm, prompt, tokens, 1, result)
  run.tries, run.disturbed = tries, why
  ok, failed = file:append(run)
  return ok, failed, "device"
end

-- Runs an experiment, and returns as experiment.run does. t: as for experiment.run, with one repeat and no warm-up; its
-- pair is closed. load: the options of dt.load.
function alone.run(t, load)
  local file, arms, kind = experiment.open(t)
  if not file then return nil, arms, kind end
  t.pair:close()
  local _, exe = shell "readlink /proc/$PPID/exe"
  exe = exe:gsub("\n$", "")
  local done, message = {}, nil
  for _, run in ipairs(file.runs) do done[record.case(run) .. run.arm] = true end
  local bar = progress(#arms * #t.prompts * #t.tokens)
  for _, prompt in ipairs(t.prompts) do
    for _, tokens in ipairs(t.tokens) do
      for _, arm in ipairs(arms) do
        local ok = done[record.case { set = prompt.set, prompt = prompt.name, tokens = tokens } .. arm.label]
        if not ok then ok, message, kind = run_one(t, load, exe, arm, prompt, tokens, file) end
        if not ok then return nil, message, kind end
        bar:step()
      end
    end
  end
  return { head = file.head, runs = file.runs }
end

return alone
