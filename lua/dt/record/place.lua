-- Where a run was made: node, job and cores, which are recorded with each run; and what that means for readers of a
-- report.
local record = require "dt.record"

local place = {}

local function first_line(path, pattern)
  local file = io.open(path)
  if not file then return nil end
  local found
  for line in file:lines() do found = found or line:match(pattern) end
  file:close()
  return found
end

-- Returns { node = the machine's name, in Slurm jobs Slurm's name for it; job = number of the Slurm job, and of the
-- task of an array ("12_3"; nil: no job); cores = the cores that may be used ("0-3,8") }.
function place.here(getenv)
  getenv = getenv or os.getenv
  local array, job = getenv "SLURM_ARRAY_JOB_ID", getenv "SLURM_JOB_ID"
  return { node = getenv "SLURMD_NODENAME" or first_line("/proc/sys/kernel/hostname", "%S+"),
           job = array and ("%s_%s"):format(array, getenv "SLURM_ARRAY_TASK_ID") or job,
           cores = first_line("/proc/self/status", "^Cpus_allowed_list:%s*(%S+)") }
end

local MOST_NAMED = 12

-- Nodes with the number of their runs, "n1: 20, n2: 22", and the number of nodes.
local function nodes_of(runs)
  local count, names, list = {}, {}, {}
  for _, run in ipairs(runs) do
    local node = run.node or "unknown"
    if not count[node] then names[#names + 1] = node end
    count[node] = (count[node] or 0) + 1
  end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = ("%s: %d"):format(name, count[name]) end
  local more = #list > MOST_NAMED and (" and %d more"):format(#list - MOST_NAMED) or ""
  return table.concat(list, ", ", 1, math.min(#list, MOST_NAMED)) .. more, #names
end

-- A text for readers about runs that were made in several places, or nil.
function place.summary(runs)
  local shards, several, plain, strangers = {}, 0, record.baseline(runs), 0
  for _, run in ipairs(runs) do
    if run.shard and not shards[run.shard] then shards[run.shard], several = true, several + 1 end
    local base = plain(run)
    if base and base.node ~= run.node then strangers = strangers + 1 end
  end
  local nodes, n = nodes_of(runs)
  if several < 2 and n < 2 then return nil end
  local here = several > 0 and (n > 1 and "shard and node" or "shard") or "node"
  local shared = several > 0 and ("in %d shards "):format(several) or ""
  local lines = { ("Runs were made %son %d node%s (%s). A speedup is the ratio to plain decoding of the same text and "
    .. "length, if possible in the same %s; policies of different shards or nodes are compared by their speedups.")
    :format(shared, n, n == 1 and "" or "s", nodes, here) }
  if n > 1 then
    lines[#lines + 1] = "Tokens per second, times and memory are those of the node that made the run, so policies "
      .. "compared here may have run on different nodes. Cost tables and presets `tuned` belong to a machine: policies "
      .. "that use them may grow other trees on another node, but never generate other tokens."
  else
    lines[#lines + 1] = "Shards that ran on one node at the same time have disturbed each other."
  end
  if strangers > 0 then
    lines[#lines + 1] = ("%d of %d runs are compared with plain decoding of another node, because there is none on "
      .. "theirs: their speedups are less reliable."):format(strangers, #runs)
  end
  return table.concat(lines, " ")
end

return place
