-- Shards: an experiment can run in n parts that do not communicate. Each part is a process with a file of its own, on
-- any machine. dt.merge makes one experiment of the files.
--
--   local part = assert(shard.chosen("3/4", "sweep.jsonl"))   -- or, with nil for "3/4", this task's part in Slurm
--   part.name                                    -- "3/4"; nil: the whole experiment
--   part:file "sweep.jsonl"                      -- "sweep-3of4.jsonl": each shard has its own
--   shard.own({ shard = "3/4", settings = { ["linear K=3"] = 12 } })["linear K=3"]   -- whether this shard runs it
--
-- Settings are dealt like cards, one to each shard in turn, in the order of a hash of their labels. So every process
-- deals in the same way, shares differ by at most one setting, and neighbours in a grid, which take similar times, are
-- spread over the shards. Every shard runs plain decoding itself, on each of its nodes, since a speedup is a ratio of
-- two speeds of the same machine.
local record = require "dt.record"

local shard = {}

local MOST = 1000000 -- shards

-- A driver's declaration of the option.
shard.OPTION = { "shard", nil, type = "string",
  doc = "i/n: run only part i of n, into FILE-iofn.jsonl (default in a Slurm array: the task's part)" }

local Part = {}
Part.__index = Part

local function part_of(number, of)
  return setmetatable({ number = number, of = of, name = of > 1 and ("%d/%d"):format(number, of) or nil }, Part)
end

-- The file of this part, if `path` is the file of the whole experiment; nil if path is nil.
function Part:file(path)
  if not self.name or not path then return path end
  local bare, ending = path:match "^(.*[^/])(%.jsonl)$"
  return ("%s-%dof%d%s"):format(bare or path, self.number, self.of, ending or "")
end

-- "3/4" as a part; or nil and the mistake.
function shard.parse(text)
  local number, of = text:match "^(%d+)/(%d+)$"
  number, of = math.tointeger(tonumber(number)), math.tointeger(tonumber(of))
  if number and of and number >= 1 and number <= of and of <= MOST then return part_of(number, of) end
  return nil, ("'%s' is not a shard: expected i/n with i from 1 to n and n at most %d, as in 3/4"):format(text, MOST)
end

-- The part of a task in a Slurm array, by the rank of its number among those of all tasks. Outside of arrays it is the
-- whole experiment.
local function slurm_part(getenv)
  local function number(name) return math.tointeger(tonumber(getenv("SLURM_ARRAY_TASK_" .. name))) end
  local id = getenv "SLURM_ARRAY_TASK_ID"
  if not id then return part_of(1, 1) end
  local count, min, step = number "COUNT", number "MIN", number "STEP" or 1
  if count == 1 then
    return nil, ("SLURM_ARRAY_TASK_ID = %s is the only task of its array, so it does not determine a shard: give "
      .. "--shard i/n, or --shard 1/1 for all"):format(id)
  end
  local place = number "ID" and min and step > 0 and (number "ID" - min) / step + 1
  if place and count and math.tointeger(place) and place >= 1 and place <= count and count <= MOST then
    return part_of(math.tointeger(place), count)
  end
  return nil, ("SLURM_ARRAY_TASK_ID = %s: expected an array of tasks at equal distances, at most %d, as in "
    .. "--array=1-4; otherwise give --shard i/n"):format(id, MOST)
end

-- Returns the part that --shard names (nil: that of the Slurm task, or the whole experiment), whose results go to
-- `out`; or nil and a message. getenv: os.getenv by default.
function shard.chosen(text, out, getenv)
  local part, message
  if text then part, message = shard.parse(text) else part, message = slurm_part(getenv or os.getenv) end
  if not part then return nil, text and "--shard: " .. message or message end
  if part.name and not out then
    return nil, ("shard %s needs --out FILE, since shards are merged from their files"):format(part.name)
  end
  return part
end

-- FNV-1a 64 of a text, with its halves mixed, since its lowest bits depend mostly on the last letters. It is used for
-- dealing only, not to identify anything.
local function hash(text)
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return (h ~ h >> 32) * 0x9e3779b97f4a7c15
end

-- Deals the labels that are keys of `settings` to n shards: label -> number of its shard.
function shard.deal(settings, n)
  local labels, hashes, dealt = {}, {}, {}
  for label in pairs(settings) do
    if label ~= record.BASELINE then labels[#labels + 1], hashes[label] = label, hash(label) end
  end
  table.sort(labels, function(a, b)
    if hashes[a] ~= hashes[b] then return math.ult(hashes[a], hashes[b]) end
    return a < b
  end)
  for i, label in ipairs(labels) do dealt[label] = (i - 1) % n + 1 end
  return dealt
end

local EVERY = setmetatable({}, { __index = function() return true end })

-- Returns a table: label -> whether the file with this head has its runs. It has plain decoding only if it has other
-- arms to compare with.
function shard.own(head)
  if not head.shard then return EVERY end
  local part, own = assert(shard.parse(head.shard)), {}
  for label, number in pairs(shard.deal(head.settings, part.of)) do
    if number == part.number then own[label], own[record.BASELINE] = true, true end
  end
  return own
end

return shard
