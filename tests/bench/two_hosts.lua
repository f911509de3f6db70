-- What two hosts and a link between them would make of an 8B target, reckoned from what was measured on one:
--   mpirun -n 2 --mca btl tcp,self build/bench_ranks MODEL > FILE
--   dtrun run tests/bench/two_hosts.lua FILE
-- FILE's gathers went through TCP to the same machine: what MPI and the system take for each. The wire comes to that.
local dt = require "dt"

local opts = dt.args {
  doc = "reckons the speed of an 8B target on two hosts", models = false, rest = "FILE",
  options = {
    { "link", 10.0, min = 0.1, doc = "of the link, Gbit/s, each way" },
    { "wire", 15.0, min = 0.0, doc = "microseconds through two network cards and a switch, beside that; assumed" },
    { "bandwidth", 0.0, min = 0.0, doc = "of a host's memory, GB/s; 0: what FILE has" },
    { "share", 0.82, min = 0.01, doc = "of it that a pass of one row reaches: 81 to 84 % was measured for Q4_K" },
  },
}

-- Llama 3.1 8B; gigabytes of Q4_K_M that a pass reads: all but the embedding.
local LAYERS, HIDDEN, INNER, VOCAB, GIGABYTES = 32, 4096, 14336, 128256, 4.6
local gathers, pass, bandwidth = {}, {}, opts.bandwidth
for line in dt.check(io.open(opts.rest[1] or "")):lines() do
  local bytes, us = line:match "^gather,(%d+),([%d.]+)"
  if bytes then gathers[#gathers + 1] = { bytes = tonumber(bytes), us = tonumber(us) } end
  local rows, whole = line:match "^pass,[^,]*,(%d+),([%d.]+)"
  if rows then pass[tonumber(rows)] = tonumber(whole) end
  local rate = line:match "^bandwidth,([%d.]+)"
  if rate and opts.bandwidth == 0 then bandwidth = tonumber(rate) end
end
if #gathers == 0 or not pass[1] or bandwidth == 0 then dt.check(nil, "FILE: not what bench_ranks prints", "input") end

-- Microseconds that a gather of so many bytes takes within a machine: on a straight line between those measured.
local function within(bytes)
  local a = gathers[1]
  if bytes <= a.bytes then return a.us end
  for i = 2, #gathers do
    local b = gathers[i]
    if bytes <= b.bytes or i == #gathers then return a.us + (b.us - a.us) * (bytes - a.bytes) / (b.bytes - a.bytes) end
    a = b
  end
end

-- A gather over two hosts: each sends its half while it receives the other's.
local function gather(bytes) return within(bytes) + opts.wire + bytes / 2 * 8 / (opts.link * 1e3) end

print(("two hosts of %.1f GB/s, %.0f %% of it reached, a link of %g Gbit/s with %g us of its own"):format(bandwidth,
  100 * opts.share, opts.link, opts.wire))
print "rows  one host ms  two: weights ms  gathers ms  two hosts ms  speed"
for _, rows in ipairs { 1, 8 } do
  local one = GIGABYTES / (bandwidth * opts.share) * 1e3 * pass[rows] / pass[1]
  local row = 4 * rows -- bytes of a number of all rows
  local layer = gather(HIDDEN * row) * 3 + gather(INNER * row) -- attention, o and down; up and gate
  local ms = (LAYERS * layer + gather(HIDDEN * row) + gather(VOCAB * row)) / 1e3
  print(("%4d  %11.1f  %15.1f  %10.1f  %12.1f  %4.2fx"):format(rows, one, one / 2, ms, one / 2 + ms,
    one / (one / 2 + ms)))
end
