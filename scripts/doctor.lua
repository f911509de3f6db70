-- Prints what dtrun finds on this machine, on one page to paste into a bug report, and which drafts fit a model.
--   dtrun doctor [-m MODEL]
local drafts = require "dt.drafts"
local dt = require "dt"
local shell = require "dt.shell"

local opts = dt.args {
  doc = "prints what dtrun finds on this machine, on one page to paste into a bug report; with -m, what a model takes "
    .. "and which drafts fit it"
}

local function line(name, form, ...) print(("%-13s %s"):format(name .. ":", form:format(...))) end

-- The contents of a file, or "".
local function text_of(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a" or ""
  if file then file:close() end
  return text
end

local function field(path, pattern) return text_of(path):match(pattern) or "unknown" end

local function gigabytes(kib) return ("%.1f GB"):format((tonumber(kib) or 0) * 1024 / 1e9) end

local function is_file(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- The names in a folder; none if there is no such folder.
local function names_in(folder)
  local status, output = shell("cd %s && ls -1", folder)
  local names = {}
  for name in (status == 0 and output or ""):gmatch "[^\n]+" do names[#names + 1] = name end
  return names
end

local function set(name) return os.getenv(name) ~= "" and os.getenv(name) or nil end

local function user_folder(variable, fallback)
  return set(variable) or (set "HOME" or "") .. "/" .. fallback
end

-- ---- the machine ----------------------------------------------------------------------------------------------------

local FEATURES = { "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile",
  "amx_int8", "asimd", "asimddp", "i8mm" }

local function features()
  local info, found = text_of "/proc/cpuinfo", {} -- x86 has "flags", ARM has "Features"
  local flags = " " .. (info:match "\nflags%s*:([^\n]*)" or info:match "\nFeatures%s*:([^\n]*)" or "") .. " "
  for _, name in ipairs(FEATURES) do
    if flags:find(" " .. name .. " ", 1, true) then found[#found + 1] = name end
  end
  return #found > 0 and table.concat(found, " ") or "none that dtrun uses"
end

local function quota()
  local most, period = text_of "/sys/fs/cgroup/cpu.max":match "^(%d+) (%d+)"
  return most and ("%.2f processors"):format(most / period) or "none"
end

local function machine()
  line("dtrun", "%s, %s", dt.version, _VERSION)
  line("system", "%s, %s", field("/etc/os-release", 'PRETTY_NAME="([^"]*)"'), field("/proc/version", "^%S+ %S+ %S+"))
  line("processor", "%s", dt.machine)
  line("features", "%s", features())
  line("processors", "%d usable; allowed: %s; quota of the control group: %s", dt.processors,
    field("/proc/self/status", "Cpus_allowed_list:%s*(%S+)"), quota())
  local last = text_of "/sys/devices/system/cpu/cpu0/cache/index3/size":match "%S+"
  line("memory", "%s, %s free; last cache %s", gigabytes(field("/proc/meminfo", "MemTotal:%s*(%d+)")),
    gigabytes(field("/proc/meminfo", "MemAvailable:%s*(%d+)")), last or "unknown")
end

-- ---- what runs on it ------------------------------------------------------------------------------------------------

local function tried(backend)
  local pair, failure = dt.load { backend = backend }
  if pair then pair:close() end
  return pair ~= nil, failure and failure.message
end

-- Runs plain decoding and a chain with the bundled pair, to see that they work and give the same tokens.
local function works(pair)
  local function run(policy)
    return pair:generate { policy = policy, prompt = "It was a dark night, and", tokens = 48 }
  end
  run "ar"
  local plain, failure = run "ar"
  if not plain then return "fails: " .. failure.message end
  local chain, other = run "linear"
  if not chain then return "fails: " .. other.message end
  local same = plain.stats.output_hash == chain.stats.output_hash
  return ("ar %.0f, linear %.0f tokens/s, prompt included, %s"):format(plain.stats.tokens_per_second,
    chain.stats.tokens_per_second, same and "the same tokens" or "DIFFERENT TOKENS: this is a bug, report it")
end

-- Whether the GPU is used, or why not.
local function gpu(has_cuda)
  if has_cuda then
    local works_there, why = tried "cuda"
    return works_there and "cuda works" or "none: " .. why
  end
  for _, name in ipairs(names_in "/dev") do
    if name:find "^nvidia%d" then return ("/dev/%s exists, but this program has no CUDA backend"):format(name) end
  end
  return "none: /dev/nvidia0 does not exist"
end

local function engine()
  local pair, failure = dt.load {}
  if not pair then
    line("backend", "none: %s", failure.message)
    return
  end
  local backend = pair.backend
  local variants, known = {}, select(2, tried "none") or "" -- the error message lists the backends of this machine
  for name in known:gmatch "cpu:%w+" do variants[#variants + 1] = name end
  local identity = pair:identity()
  line("build", "%s, commit %s", identity.build or "unknown", identity.commit or "unknown")
  line("backend", "%s with %d threads; available: %s", pair.backend, pair.threads, table.concat(variants, " "))
  line("bandwidth", "%.1f GB/s read by these threads", pair:bandwidth() / 1e9)
  line("bundled pair", "%s", works(pair))
  pair:close()
  local has_cuda = known:find("auto, cuda,", 1, true) ~= nil -- the message also lists the backends of this program
  line("backends", "%s", has_cuda and "cpu and cuda" or
    "cpu; this program was built without cuda: build it with scripts/quickstart or cmake --preset cuda")
  line("GPU", "%s", gpu(has_cuda))
  line("MPI", "%s", dt.mpi() and "mpirun -n R dtrun ... shares the target among R processes" or
    "none: Open MPI was not installed when dtrun was built")
  return backend
end

-- ---- files ----------------------------------------------------------------------------------------------------------

local function is_model(path) return path:find "%.gguf$" or is_file(path .. "/config.json") end

local function hub_folder()
  return set "HF_HUB_CACHE" or set "HF_HOME" and set "HF_HOME" .. "/hub"
    or user_folder("XDG_CACHE_HOME", ".cache") .. "/huggingface/hub"
end

local function models()
  local hub = hub_folder()
  for i, home in ipairs(dt.homes()) do
    line(i == 1 and "files" or "then", "%s", home)
    for _, name in ipairs(names_in(home .. "/models")) do
      local path = home .. "/models/" .. name
      if is_model(path) then line("model", "%s", path) end
    end
  end
  for _, name in ipairs(names_in(hub)) do
    local id = name:match "^models%-%-(.*)"
    if id then line("model", "%s in %s", (id:gsub("%-%-", "/", 1)), hub) end
  end
  for _, name in ipairs { "DTRUN_HOME", "DTRUN_TARGET", "DTRUN_DRAFT", "HF_HOME", "HF_HUB_CACHE", "OMP_NUM_THREADS" } do
    if set(name) then line(name, "%s", set(name)) end
  end
end

-- Parts of dtrun that are programs of their own are next to it, or in lib/dtrun of an installation.
local function parts()
  local _, own = shell "readlink /proc/$PPID/exe"
  local folder = own and own:match "^(/.*)/" or "/nowhere"
  for _, part in ipairs { { "serve", "libmicrohttpd-dev" }, { "pull", "libcurl4-openssl-dev" } } do
    local name = "/dtrun-" .. part[1]
    local is_there = is_file(folder .. name) or is_file(folder .. "/../lib/dtrun" .. name)
    line(part[1], is_there and "dtrun %s is installed" or "none: building it needs %s", part[is_there and 1 or 2])
  end
end

local function programs()
  for _, program in ipairs { { "gnuplot", "gnuplot --version" }, { "Graphviz", "dot -V" } } do
    local status, output = shell(program[2])
    line(program[1], "%s", status == 0 and output:match "[^\n]*" or "not installed")
  end
end

local function costs_folder() return user_folder("XDG_CACHE_HOME", ".cache") .. "/dtrun" end

local function kept()
  local costs = costs_folder()
  local presets = user_folder("XDG_CONFIG_HOME", ".config") .. "/dtrun/presets"
  line("caches", "files of costs in %s: %d", costs, #names_in(costs))
  line("tuned", "presets in %s: %d", presets, #names_in(presets))
end

-- ---- what a model takes ---------------------------------------------------------------------------------------------

local function gb(bytes) return bytes < 1e9 and ("%.1f MB"):format(bytes / 1e6) or ("%.1f GB"):format(bytes / 1e9) end

-- How a model that is larger than the memory of the GPUs can be run.
local function remedy(needs)
  local ways = {}
  if needs.cpu_experts > 0 then ways[#ways + 1] = ("--cpu-experts %d"):format(needs.cpu_experts) end
  if needs.gpu_layers > 0 then ways[#ways + 1] = ("--gpu-layers %d (of %d)"):format(needs.gpu_layers, needs.layers) end
  return #ways > 0 and table.concat(ways, " or ") .. " fits" or "none of its layers fits: --backend cpu"
end

local function asked_model()
  local needs, failure = dt.needs(opts.load)
  if not needs then
    line("on GPUs", "%s", failure.message)
    return
  end
  line("on GPUs", "%s needs %s with a context of %d: weights %s, caches %s, scratch %s (and %s on the host)",
    opts.load.target, gb(needs.weights + needs.caches + needs.scratch), needs.context, gb(needs.weights),
    gb(needs.caches), gb(needs.scratch), gb(needs.host))
  line("fits", "%s are free: %s", gb(needs.free),
    needs.gpu_layers == needs.layers and "all of it fits" or remedy(needs))
end

-- Which drafts fit the model.
local function its_drafts(backend)
  local lines, failure = drafts.about(opts.load.target,
    { machine = dt.machine, backend = backend, cache = costs_folder(), hub = hub_folder() })
  if not lines then
    line("drafts", "%s", failure.message)
    return
  end
  for _, one in ipairs(lines) do line(one[1], "%s", one[2]) end
end

machine()
local backend = engine()
if opts.load.target then
  asked_model()
  its_drafts(backend)
end
models()
programs()
parts()
kept()
