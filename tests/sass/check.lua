-- Checks what nvcc made of the CUDA backend.  dtrun run tests/sass/check.lua LIBRARY [--renew]
--
-- Four things are read from LIBRARY (build/cuda/cuda/libdtrun_cuda.a) with cuobjdump:
-- 1. The loops of the matrix products (kernels k_matmul...): no instruction may wait for a load from device memory that
--    was issued fewer steps earlier than the last number of the kernel's name says. A step is the tensor core's work on
--    32 k: two instructions for each accumulator. If a loop takes several steps in each pass, what its last step loads
--    counts as loaded by all of them. Loops are followed by their control bits: every instruction says for
--    which of six counters it waits, and a load which counter it increments; copies to shared memory are waited for in
--    groups. Whether the bits have this meaning on an architecture is checked with the instructions that read what was
--    loaded: the bits must say that they wait for it.
-- 2. The norms (kernels k_norm) with four columns per thread or more: after the wait for the previous kernel, the parts
--    of several columns are loaded before the first of them is added. This takes one access time of the memory, where a
--    chain of loads takes one per part.
-- 3. Attention (kernels k_attention): after the addition that finds a row's last part, several parts are loaded before
--    the first is used. On an H100, loads after branches took one access time per part, which was most of a pass at
--    long contexts.
-- 4. Registers, stack (spilled registers), shared memory, threads, and the number of blocks per multiprocessor, for
--    each kernel, and the instructions of a step of a product's loop (a warp's, for all its tiles and rows): they must
--    be those in table.txt, which --renew writes. The table holds for one version of nvcc; it is not compared with the
--    result of another one.
-- Without nvcc or cuobjdump the check is skipped (exit status 77).
local dt = require "dt"

local opts = dt.args {
  doc = "checks the machine code of the CUDA backend",
  options = {
    { "renew", false, doc = "writes the table instead of comparing with it" },
    { "steps", nil, type = "integer", min = 1, max = 16, doc = "the number of steps, for kernels whose names lack it" },
  },
  rest = "LIBRARY",
  models = false,
}
local TABLE = (arg[0]:match "^(.*/)" or "./") .. "table.txt"

-- For a multiprocessor: bytes of shared memory, threads, and the bytes that cuobjdump adds to a block's own.
local UNITS = {
  sm_80 = { shared = 164 << 10, threads = 2048, counted = 0 },
  sm_90 = { shared = 228 << 10, threads = 2048, counted = 1024 },
  sm_100 = { shared = 228 << 10, threads = 2048, counted = 1024 },
  sm_120 = { shared = 100 << 10, threads = 1536, counted = 1024 },
}
-- Steps. With 64 rows a step is 64 products of a warp, with 144 rows some 500 clocks; a load takes up to 1400 clocks.
local LEAST = 2
local COLUMNS, TOGETHER = 4, 24 -- of a norm's thread: the parts of three columns; other loops have up to 16 loads
local PARTS = 8 -- of a row, with 16 bytes each
local PASSES = 12 -- of an inner loop; after this number the waits no longer change
local REGISTERS, BLOCKS, RESERVED, PARTITIONS = 65536, 32, 1024, 4

local function skip(reason)
  print("skipped: " .. reason)
  os.exit(77)
end

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>/dev/null", "r"))
  local text = pipe:read "a"
  return pipe:close() and text or nil
end

local function find_cuobjdump()
  local places = { os.getenv "CUOBJDUMP" or "cuobjdump", "/usr/local/cuda/bin/cuobjdump" }
  local package = output_of([["${PYTHON:-python3}" -c ]] ..
    [['import importlib.util as u; print(u.find_spec("triton").submodule_search_locations[0])']])
  if package then places[#places + 1] = package:gsub("\n", "") .. "/backends/nvidia/bin/cuobjdump" end
  for _, place in ipairs(places) do
    if output_of(("%s --version"):format(place)) then return place end
  end
  skip "cannot find cuobjdump; it is in the CUDA toolkit and in the Python package triton (set CUOBJDUMP or PYTHON)"
end

-- Names of the enumeration values that occur in symbols: internal.cuh and device.cuh.
local VALUES = {
  ["6number"] = { "F16", "BF16" },
  ["7packing"] = { "BITS16", "BITS3", "BITS4", "TABLE4", "BITS5", "BITS6", "BITS8" },
  ["12cache_format"] = { "CACHE_16", "CACHE_Q8" },
  b = { "false", "true" },
}

-- Turns _Z8k_matmulIL6number1EL7packing0ELi1ELi4E14plain_epilogueEv7productT3_ into
-- k_matmul<BF16, BITS16, 1, 4, plain_epilogue>.
local function readable(symbol)
  local function take(text) -- the text that a length precedes, and the rest
    local length, rest = text:match "^(%d+)(.*)$"
    return rest:sub(1, tonumber(length)), rest:sub(tonumber(length) + 1)
  end
  if not symbol:match "^_Z%d" then return symbol end
  local name, rest = take(symbol:sub(3))
  local arguments = {}
  if rest:sub(1, 1) ~= "I" then return name end
  rest = rest:sub(2)
  while rest:sub(1, 1) ~= "E" do
    local kind, value, after = rest:match "^L(%d*[%a_]+)(%d+)E(.*)$"
    if kind then
      value = VALUES[kind] and VALUES[kind][tonumber(value) + 1] or value
    else
      value, after = take(rest)
    end
    arguments[#arguments + 1], rest = value, after
  end
  return ("%s<%s>"):format(name, table.concat(arguments, ", "))
end

-- ---- the table ----

local ROW = "%-6s  %-56s %9s %5s %7s %7s %6s %4s"

-- Reads the PTX: for each symbol its threads, and the shared memory that the launch adds (DYNAMIC_SHARED_OF in
-- device.cuh).
local function read_ptx(cuobjdump, library)
  local found, entry = {}, nil
  for line in assert(io.popen(("%s -ptx '%s'"):format(cuobjdump, library))):lines() do
    local symbol = line:match "%.entry ([%w_]+)"
    if line:find "^%.version" then -- another file: what it declares first belongs to no kernel
      entry = nil
    elseif symbol then
      entry = { threads = nil, dynamic = nil }
      found[symbol] = entry
    elseif entry then
      entry.threads = entry.threads or tonumber(line:match "^%.maxntid (%d+)")
      entry.dynamic = entry.dynamic or tonumber(line:match "dynamic_shared_(%d+)")
      entry.unknown = entry.unknown or line:find("dynamic_shared_[^%d]") and true
    end
  end
  return found
end

local function blocks_of(arch, registers, shared, threads)
  local warps = (threads + 31) // 32
  local warp_registers = (registers + 7) // 8 * 8 * 32
  local by_registers = REGISTERS // PARTITIONS // warp_registers * PARTITIONS // warps
  local by_shared = UNITS[arch].shared // ((shared + RESERVED + 127) // 128 * 128)
  return math.min(by_registers, by_shared, UNITS[arch].threads // (warps * 32), BLOCKS)
end

-- steps: the instructions of a product's step, by architecture and symbol, as check_waits returns them.
local function table_of(cuobjdump, library, nvcc, steps)
  local ptx, rows, arch, symbol = read_ptx(cuobjdump, library), {}, nil, nil
  for line in assert(io.popen(("%s -res-usage '%s'"):format(cuobjdump, library))):lines() do
    arch = line:match "^arch = (sm_%d+)" or arch
    symbol = line:match "^ Function ([%w_]+):" or symbol
    local registers, stack, shared = line:match "REG:(%d+) STACK:(%d+) SHARED:(%d+)"
    if registers and UNITS[arch] then
      local entry = ptx[symbol] or {}
      local own = math.max(0, tonumber(shared) - UNITS[arch].counted) + (entry.dynamic or 0)
      local known = entry.dynamic or not entry.unknown
      rows[#rows + 1] = ROW:format(arch, readable(symbol), registers, stack, known and own or "-", entry.threads or "-",
        known and entry.threads and blocks_of(arch, tonumber(registers), own, entry.threads) or "-",
        steps[arch .. symbol] or "-")
    end
  end
  table.sort(rows)
  local head = ROW:format("arch", "kernel", "registers", "stack", "shared", "threads", "blocks", "step")
  return ("# %s. Written by check.lua --renew; -: what the launch decides.\n%s\n%s\n"):format(nvcc, head,
    table.concat(rows, "\n"))
end

local function compare(fresh)
  local file = io.open(TABLE)
  local old = file and file:read "a" or ""
  if file then file:close() end
  if old:match "^[^\n]*" ~= fresh:match "^[^\n]*" then
    print(("table.txt is not compared: it was written for '%s', this is '%s'"):format(old:match "^[^\n]*",
      fresh:match "^[^\n]*"))
    return true
  end
  local known, same = {}, true
  for line in old:gmatch "[^\n]+" do known[line] = true end
  for line in fresh:gmatch "[^\n]+" do
    if not known[line] then print("new:  " .. line) same = false end
    known[line] = nil
  end
  for line in old:gmatch "[^\n]+" do
    if known[line] then print("gone: " .. line) same = false end
  end
  if not same then print "table.txt differs; check what changed, then renew it (--renew) in the same commit" end
  return same
end

-- ---- the waits ----

-- Calls back with arch, symbol and instructions for each kernel of that name.
local function each_kernel(cuobjdump, library, name, callback)
  local arch, symbol, code, pending
  local function done()
    if symbol and symbol:find(name, 1, true) then callback(arch, symbol, code) end
  end
  for line in assert(io.popen(("%s -sass '%s'"):format(cuobjdump, library))):lines() do
    local next_arch, next_symbol = line:match "code for (sm_%d+)", line:match "Function : ([%w_]+)"
    if next_arch or next_symbol then done() symbol = nil end
    arch = next_arch or arch
    if next_symbol then symbol, code = next_symbol, {} end
    if pending and symbol then
      local bits = math.tointeger(tonumber(line:match "/%* (0x%x+) %*/"))
      pending.write, pending.wait = bits >> 46 & 7, bits >> 52 & 63
      code[#code + 1], pending = pending, nil
    end
    local at, text = line:match "/%*(%x%x%x%x+)%*/%s+(.-)%s*;"
    if at then
      pending = { at = tonumber(at, 16), text = text, op = text:gsub("^@!?U?P%w+%s+", ""):match "^[%w_%.]+" }
    end
  end
  done()
end

-- Finds the loops with tensor-core instructions. Each is a list of its instructions in the order in which they run.
-- These are the innermost loops and, if a loop's first pass is written out before it, also the loop around both, with
-- several passes of the inner one. Also returns how many of the tensor-core instructions are in none of the loops, and
-- how many a step has.
local function loops_of(code)
  local index, all, inner, orders, outside = {}, {}, {}, {}, 0
  local function holds(loop, i) return loop[1] <= i and i <= loop[2] end
  local function among(loops, i)
    for _, loop in ipairs(loops) do
      if holds(loop, i) then return loop end
    end
  end
  for i, one in ipairs(code) do index[one.at] = i end
  for i, one in ipairs(code) do
    local target = one.op:match "^BRA" and index[tonumber(one.text:match "(0x%x+)%s*$") or -1]
    local has = false
    for j = target or i, i do has = has or code[j].op:match "^HMMA" end
    if target and target < i and has then all[#all + 1] = { target, i } end
  end
  table.sort(all, function(a, b) return a[2] - a[1] < b[2] - b[1] end)
  for _, loop in ipairs(all) do
    local around = false
    for _, other in ipairs(inner) do around = around or holds(loop, other[1]) and holds(loop, other[2]) end
    if not around then inner[#inner + 1] = loop end
  end
  local peeled = {}
  for i, one in ipairs(code) do
    if one.op:match "^HMMA" and not among(inner, i) then
      local around = among(all, i)
      if around then peeled[around] = true else outside = outside + 1 end
    end
  end
  for _, loop in ipairs(all) do
    local order = {}
    local function run(first, last) for i = first, last do order[#order + 1] = i end end
    for i = loop[1], loop[2] do
      run(i, i)
      local last = among(inner, i)
      for _ = 1, last and last ~= loop and last[2] == i and PASSES or 0 do run(last[1], last[2]) end
    end
    if among(inner, loop[1]) == loop or peeled[loop] then orders[#orders + 1] = order end
  end
  -- An accumulator may stay in one register, or move from one to another.
  local accumulator, per_step = {}, 0
  local function root(register)
    while accumulator[register] and accumulator[register] ~= register do register = accumulator[register] end
    return register
  end
  for i = inner[1] and inner[1][1] or 1, inner[1] and inner[1][2] or 0 do
    local to, from = code[i].text:match "HMMA%S+ (R%d+),.*%s(R%w+)"
    for _, register in ipairs { to, from } do
      if not accumulator[register] then accumulator[register], per_step = register, per_step + 2 end
    end
    if to and root(to) ~= root(from) then accumulator[root(from)], per_step = root(to), per_step - 2 end
  end
  return orders, outside, per_step
end

local function products_of(code, order)
  local n = 0
  for _, i in ipairs(order) do n = n + (code[i].op:match "^HMMA" and 1 or 0) end
  return n
end

-- The instructions of a step, rounded, if no forward branch is taken.
local function instructions_of(code, order, per_step)
  return math.floor(#order * per_step / products_of(code, order) + 0.5)
end

-- Returns, as lines, where a loop waits too early. Every forward branch is assumed not to be taken.
local function early_waits(code, order, steps, per_step)
  local on, open, groups, found, products, step = {}, {}, {}, {}, 0, 0
  for counter = 0, 5 do on[counter] = {} end
  local function waits(one, loads)
    for _, load in ipairs(loads) do
      if step - load.step < steps and not found[one.at] then
        found[one.at] = true
        found[#found + 1] = ("%04x %s waits for %04x %s, issued %d steps before"):format(one.at, one.text, load.at,
          load.op, step - load.step)
      end
    end
  end
  for _ = 1, 3 * steps + 4 do
    local ends = products + products_of(code, order) -- the number of products when this pass has ended
    for _, i in ipairs(order) do
      local one = code[i]
      step = math.min(products, ends - 1) // per_step
      for counter = 0, 5 do
        if one.wait >> counter & 1 == 1 then
          waits(one, on[counter])
          on[counter] = {}
        end
      end
      local left = tonumber(one.text:match "^DEPBAR%.LE SB%d, (0x%x+)")
      while left and #groups > left do waits(one, table.remove(groups, 1)) end
      local load = { at = one.at, op = one.op, step = step }
      if one.op:match "^LDGSTS" then
        open[#open + 1] = load
      elseif one.op == "LDGDEPBAR" then
        groups[#groups + 1], open = open, {}
      elseif one.op:match "^LDG" or one.op:match "^LD%." then
        if one.write < 6 then table.insert(on[one.write], load) end
      elseif one.op:match "^HMMA" then
        products = products + 1
      end
    end
  end
  return found
end

-- Counts how often something reads what was loaded, and how often the bits do not say that it waits for this. The
-- second number must be 0; otherwise the bits mean something else on this architecture.
local function reads_of(code)
  local counter_of, reads, unexplained = {}, 0, 0
  for _, one in ipairs(code) do
    for register, counter in pairs(counter_of) do
      if one.wait >> counter & 1 == 1 then counter_of[register] = -1 end
    end
    for register in one.text:gmatch "%f[%w]R(%d+)" do
      local counter = counter_of[register]
      if counter then reads, unexplained = reads + 1, unexplained + (counter < 0 and 0 or 1) end
      counter_of[register] = nil
    end
    if one.op:match "^LDS" or one.op:match "^LDG%." then
      local first, bits = tonumber(one.text:match "%sR(%d+)"), tonumber(one.op:match "%.(128)" or one.op:match "%.(64)")
      local width = (bits or 32) // 32
      for register = first or 0, first and first + width - 1 or -1 do
        counter_of[tostring(register)] = one.write < 6 and one.write or nil
      end
    elseif one.op:match "^BRA" or one.op:match "^EXIT" then
      counter_of = {}
    end
  end
  return reads, unexplained
end

-- Also returns the number of instructions of a step of each kernel's loop, by architecture and symbol.
local function check_waits(cuobjdump, library)
  local kernels, wrong, reads, unexplained, counts = 0, 0, {}, {}, {}
  each_kernel(cuobjdump, library, "k_matmul", function(arch, symbol, code)
    local name = readable(symbol)
    local steps = opts.steps or tonumber(name:match "(%d+), [%a_]+>$")
    local loops, outside, per_step = loops_of(code)
    local found = not steps and { "its name does not give the number of steps" }
      or steps < LEAST and { "fewer than " .. LEAST .. " steps" }
      or outside > 0 and { outside .. " tensor-core instructions outside the loop" } or {}
    if #loops == 0 then found = { "no loop with tensor-core instructions" } end
    if loops[1] then counts[arch .. symbol] = instructions_of(code, loops[1], per_step) end
    for _, loop in ipairs(#found == 0 and loops or {}) do
      local together = products_of(code, loops[1]) // per_step -- steps of a pass through the inner loop
      for _, line in ipairs(early_waits(code, loop, steps - together + 1, per_step)) do found[#found + 1] = line end
    end
    kernels = kernels + 1
    local all, without = reads_of(code)
    reads[arch], unexplained[arch] = (reads[arch] or 0) + all, (unexplained[arch] or 0) + without
    if #found > 0 then
      wrong = wrong + 1
      print(("FAIL  %s %s (%s steps), %d times, the first:\n        %s"):format(arch, name, steps, #found, found[1]))
    else
      print(("ok    %s %s: %d steps"):format(arch, name, steps))
    end
  end)
  for arch, all in pairs(reads) do
    local believed = all > 0 and unexplained[arch] == 0
    print(("%s  %s the bits account for %d of %d reads of loaded values"):format(believed and "ok  " or "FAIL", arch,
      all - unexplained[arch], all))
    if not believed then wrong = wrong + 1 end
  end
  if kernels == 0 then print "FAIL  the library has no kernel k_matmul" end
  return kernels > 0 and wrong == 0, counts
end

-- The longest sequence of loads after the wait, with no addition in between.
local function loads_together(code)
  local run, longest, waited = 0, 0, false
  for _, one in ipairs(code) do
    if one.op:match "^ACQBULK" then waited, longest = true, 0 end
    if one.op:match "^LDG" then run = run + 1 end
    if one.op:match "^FADD" or one.op:match "^ACQBULK" then run = 0 end
    longest = math.max(longest, run)
  end
  return waited and longest or nil -- before sm_90 kernels do not wait
end

-- The longest sequence of loads of 16 bytes after the last atomic addition, with no branch in between.
local function parts_together(code)
  local run, longest = 0, 0
  for _, one in ipairs(code) do
    if one.op:match "^ATOM" then longest = 0 end
    run = (one.op:match "^BRA" or one.op:match "^ATOM") and 0 or run + (one.op:match "^LDG.*%.128" and 1 or 0)
    longest = math.max(longest, run)
  end
  return longest
end

-- Every kernel whose symbol contains `name` must have at least `least` loads together; if loads_of returns nil, any
-- number will do.
local function check_loads(cuobjdump, library, name, least, loads_of)
  local kernels, wrong = 0, 0
  each_kernel(cuobjdump, library, name, function(arch, symbol, code)
    local loads = loads_of(code, readable(symbol))
    if not loads then return end
    kernels = kernels + 1
    if loads < least then wrong = wrong + 1 end
    print(("%s  %s %s: %d loads together"):format(loads < least and "FAIL" or "ok  ", arch, readable(symbol), loads))
  end)
  if kernels == 0 then print(("FAIL  the library has no kernel %s"):format(name)) end
  return kernels > 0 and wrong == 0
end

local function check_norms(cuobjdump, library)
  return check_loads(cuobjdump, library, "6k_normI", TOGETHER, function(code, kernel)
    local columns = tonumber(kernel:match "(%d+)>$") -- columns per thread
    return columns >= COLUMNS and loads_together(code) or nil
  end)
end

local library = opts.rest[1]
if not library then
  io.stderr:write "check.lua: expected a library, such as build/cuda/cuda/libdtrun_cuda.a\n"
  os.exit(2)
end
local nvcc = output_of "nvcc --version || /usr/local/cuda/bin/nvcc --version"
if not nvcc then skip "no nvcc" end
local cuobjdump = find_cuobjdump()
local waits, steps = check_waits(cuobjdump, library)
local fresh = table_of(cuobjdump, library, "nvcc " .. nvcc:match "V([%d.]+)", steps)
if opts.renew then
  local file = assert(io.open(TABLE, "w"))
  file:write(fresh)
  file:close()
end
local norms = check_norms(cuobjdump, library)
local parts = check_loads(cuobjdump, library, "11k_attentionI", PARTS, parts_together)
local same = compare(fresh)
os.exit(waits and norms and parts and same and 0 or 1)
