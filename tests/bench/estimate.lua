-- Estimates how long a pass should take, with a model that is fitted to measurements on one H200 and one H100.
-- dtrun run tests/bench/estimate.lua [-v | --check]
--
-- The table of the machine code (tests/sass/table.txt) gives the number of blocks per multiprocessor, a block's part of
-- the work (in the kernel's name) and the instructions of a step. The shape gives the bytes and the number of blocks.
-- The rest is in NUMBERS, each with its source; none of them changes with a kernel. A product takes as long as the
-- slowest of three things, or a little longer: reading its weights from memory; moving data from the second-level cache
-- to the multiprocessors; and the steps of the fullest multiprocessor. The script fails (exit status 1) if a bar is
-- missed, or if cuda/README.md has other numbers: a change that makes kernels slower must say so.
--
-- --check estimates the passes that were measured (results/passes.txt), with kernels from before the later changes
-- (tests/sass/measured.txt), and prints the errors. The numbers were fitted to half of these passes ("fit"), without
-- Pythia-70M's; what the model has in it was chosen with all of them in view. Exit status 1: an error is above MOST.
local dt = require "dt"

local opts = dt.args {
  doc = "estimates how long passes take on an A100, H100, H200, 4090 and 3090",
  options = {
    { "check", false, doc = "compares estimates with passes that were measured (results/passes.txt)" },
    { "verbose", false, short = "v", doc = "also prints every kernel of a pass, and the sources of the numbers" },
  },
  models = false,
}
local HERE = arg[0]:match "^(.*/)" or "./"

-- ---- what is put in ----

local NUMBERS = {
  memory = { 0.88, "of the data sheet's bandwidth: a streaming sum on an H200 reads 4.2 of 4.8 TB/s; assumed for all" },
  mma_sync = { 0.63, "of wgmma's peak: what mma.sync reaches on Hopper (arXiv 2402.13499)" },
  shared = { 128, "bytes per clock and multiprocessor, read or written (32 banks of 4 bytes)" },
  step = { 530, "clocks of a step that do not overlap: a barrier, and the first operands (fitted)" },
  rows = { 0.5, "1 / blocks^this of a block's rows come from the second-level cache, with this number of blocks on " ..
    "a multiprocessor that work on slices; other blocks left the rest in the first-level cache (fitted)" },
  overlap = { 6, "p of (a^p + b^p + c^p)^(1/p), the time of such a product whose memory, cache and steps take " ..
    "alone a, b and c (fitted)" },
  cache = { 0.85, "of the second-level cache's rate, in such a product (fitted)" },
  issue = { 1.6, "clocks of a scheduler per instruction of a product's loop (fitted)" },
  latency = { 530, "clocks of a warp's step that only other warps hide, up to 64 rows: its loads and sums (fitted)" },
  boundary = { 0.3, "us from a kernel's end to the dependent launch that waits for it in a graph (fitted)" },
  independent = { 0.6, "additional us without dependent launches: a tiny kernel in a graph takes 1.3 us in all" },
  norm = { 2.8, "us: a load, two sums over the block, a store (from runs on an H200 without norms)" },
  attention = { 2.5, "us: keys, values, fences (fitted to an H100, and to runs on an H200 without attention)" },
  share = { 2, "additional us for each block of the fullest multiprocessor (fitted likewise)" },
  trip = { 0.4, "us to the second-level cache and back (fitted to an H100, which loaded a row's parts one by one)" },
  route = { 6, "us: a router's sums in f32, then the choice and the sort of the pairs in one block (assumed)" },
  factors = { 3, "us: products of a row's key and query with the keys of its path (assumed)" },
  state = { 0.3, "us of a delta layer for each row of a text: loads from the cache, two barriers (assumed)" },
  candidates = { 11, "us: top-k and log-sum-exp of the logits of 8 rows (from the number of stages in logits.cu)" },
  host = { 9, "us: copying rows to the device, launching the graph, waiting for results (assumed)" },
}
local function of(name) return NUMBERS[name][1] end

-- From data sheets: bytes per second of memory, multiprocessors, clock, products per clock and multiprocessor; and
-- whether there are dependent launches. The rate of the second-level cache is the one that chipsandcheese.com measured
-- on an H100 (PCIe); for the A100 it is scaled by the clock.
local DEVICES = {
  { name = "H200", arch = "sm_90", memory = 4.8e12, units = 132, clock = 1.755e9, cache = 5.5e12,
    peak = 2048 * of "mma_sync", early = true },
  { name = "H100", arch = "sm_90", memory = 3.35e12, units = 132, clock = 1.755e9, cache = 5.5e12,
    peak = 2048 * of "mma_sync", early = true },
  { name = "A100", arch = "sm_80", memory = 2.04e12, units = 108, clock = 1.41e9, cache = 3.6e12, peak = 1024 },
  -- its second-level cache is assumed to be as fast as an H100's; passes of more than 32 rows are not estimated
  { name = "4090", arch = "sm_80", memory = 1.008e12, units = 128, clock = 2.52e9, cache = 5.5e12, peak = 256,
    few = true },
  -- the same assumption for its cache
  { name = "3090", arch = "sm_80", memory = 0.936e12, units = 82, clock = 1.695e9, cache = 3.6e12, peak = 256,
    few = true },
}

-- The bytes of a tile in a step, and the name of the packing in the machine code.
local F16, K4, MXFP4 = { bytes = 1024 }, { bytes = 320, packing = "BITS4" }, { bytes = 288, packing = "TABLE4" }

local MODELS = {
  pythia = { name = "Pythia-2.8B", layers = 32, hidden = 2560, heads = 32, kv_heads = 32, dim = 80, inter = 10240,
             vocab = 50304 },
  draft = { name = "Pythia-70M", layers = 6, hidden = 512, heads = 8, kv_heads = 8, dim = 64, inter = 2048,
            vocab = 50304 },
  llama = { name = "Llama-3.1-8B", layers = 32, hidden = 4096, heads = 32, kv_heads = 8, dim = 128, inter = 14336,
            vocab = 128256, sequential = true },
  -- in Q4_K and in MXFP4; `inter` is an expert's
  a3b = { name = "30B-A3B, Q4_K", layers = 48, hidden = 2048, heads = 32, kv_heads = 4, dim = 128, inter = 768,
          vocab = 151936, sequential = true, experts = 128, chosen = 8, weights = K4 },
  oss = { name = "gpt-oss-20b", layers = 24, hidden = 2880, heads = 64, kv_heads = 8, dim = 64, inter = 2880,
          vocab = 201088, sequential = true, experts = 32, chosen = 4, weights = MXFP4 },
  -- three of four layers are delta layers; the heads of the others have gates
  qwen35 = { name = "Qwen3.5-9B Q4K", layers = 32, hidden = 4096, heads = 16, kv_heads = 4, dim = 256, inter = 12288,
             vocab = 248320, sequential = true, weights = K4, delta = { keys = 16, values = 32, dim = 128 } },
  -- its draft head, on rows of a tree: q, k and v read the token's embedding and the head's previous output
  eagle3 = { name = "its EAGLE-3", layers = 1, hidden = 4096, heads = 32, kv_heads = 8, dim = 128, inter = 14336,
             vocab = 32000, sequential = true, paired = true },
}

local function packed(model, name)
  local copy = {}
  for k, v in pairs(model) do copy[k] = v end
  copy.name, copy.weights = name, K4
  return copy
end
MODELS.pythia_q4, MODELS.llama_q4 = packed(MODELS.pythia, "2.8B, Q4_0"), packed(MODELS.llama, "8B, Q4_K")

-- Reads constants of the sources, by name.
local function constant(file, name)
  for line in assert(io.lines(HERE .. "../../cuda/" .. file)) do
    local value = line:match("[ ,]" .. name .. " = (%d+)")
    if value then return tonumber(value) end
  end
  error("no " .. name .. " in cuda/" .. file)
end
local TILES, PARTIALS = constant("internal.cuh", "BLOCK_TILES"), constant("internal.cuh", "PARTIALS")
local QUERIES, TREE_QUERIES = constant("row_batches.h", "QUERIES"), constant("internal.cuh", "TREE_QUERIES")
local SPLIT, PLACES = constant("internal.cuh", "SPLIT"), constant("internal.cuh", "PLACES")
local AT_ONCE, WARPS = constant("attention.cu", "AT_ONCE"), constant("attention.cu", "WARPS")
local MULTIPROCESSORS, LEAST_STEPS = constant("internal.cuh", "MULTIPROCESSORS"), constant("builder.cu", "LEAST_STEPS")
local SLICES, MOST_NT = constant("matmul_few.cuh", "SLICES"), constant("matmul_few.cuh", "MOST_NT")
local TILE_WARPS, WIDEST_NT = constant("matmul.cu", "TILE_WARPS"), constant("matmul.cu", "WIDEST_NT")
local WIDE_ROWS = constant("internal.cuh", "WIDE_ROWS")

-- Reads a table of kernels, as tests/sass/check.lua writes it: for each its architecture, its name, how many blocks fit
-- a multiprocessor, and for a product the instructions of a step.
local function read_kernels(path)
  local list = {}
  for line in assert(io.lines(HERE .. "../sass/" .. path)) do
    local arch, name, blocks, step = line:match "^(sm_%d+)%s+(.->)%s.-(%d+)%s+(%S+)$"
    if arch then list[#list + 1] = { arch = arch, name = name, blocks = tonumber(blocks), step = tonumber(step) } end
  end
  return list
end
local KERNELS = read_kernels "table.txt"

-- Finds the kernel of a device whose name matches a pattern; or nil.
local function look_for(device, pattern)
  for _, kernel in ipairs(device.kernels or KERNELS) do
    if kernel.arch == device.arch and kernel.name:match(pattern) then return kernel end
  end
end

-- ---- kernels, in microseconds ----

local function up(a, b) return (a + b - 1) // b end

-- A matrix as builder.cu lays it out. `second` tiles read other rows than the first ones.
local function matrix(outputs, k, apart, second)
  local m = { tiles = up(outputs, 16), steps = up(k, 32), second = second or 0, splits = 1 }
  local most = math.min(MULTIPROCESSORS // up(m.tiles, TILES), m.steps // LEAST_STEPS, PARTIALS)
  if apart and most > 1 then m.splits = most end
  return m
end

local function columns_of(m, tiles) return up(m.tiles - m.second, tiles) + up(m.second, tiles) end

-- The clocks of one step of every block: the fullest multiprocessor runs its blocks in waves, and a wave of `at_once`
-- blocks takes step(at_once).
local function steps_of(device, code, blocks, step)
  local left, clocks = up(blocks, device.units), 0
  while left > 0 do
    local at_once = math.min(left, code.blocks)
    clocks, left = clocks + step(at_once), left - at_once
  end
  return clocks
end

-- The kernel whose warps share the steps, if there is one for these weights; its number of warps by rows; and that of
-- blocks of 8 rows of a warp.
local function wide_kernel(device, packing, finish, rows)
  local nt, row_warps = 2, 4
  if rows > 64 then
    nt, row_warps = WIDEST_NT, WIDE_ROWS // (8 * WIDEST_NT)
  end
  local name = ("^k_matmul_wide<F16, %s%d, %d, %d, %%d+, %s>"):format(packing and packing .. ", " or "", TILES, nt,
    row_warps, finish)
  return look_for(device, name), row_warps, nt
end

-- A product by such a kernel: its blocks, the bytes that move from the second-level cache, and the seconds by steps.
local function many_rows(device, m, rows, weights, code, row_warps, nt)
  local warps = TILE_WARPS * row_warps
  local tiles = TILES // TILE_WARPS
  local row_blocks, columns = up(rows, 8 * nt * row_warps), columns_of(m, TILES)
  local blocks = row_blocks * columns * m.splits
  local moved = warps * (tiles * weights.bytes + nt * 512) + TILES * weights.bytes + nt * row_warps * 512
  -- The time of a step of `at_once` blocks on a multiprocessor: that of the fullest of its four tensor cores, of shared
  -- memory, or of its schedulers.
  local function step(at_once)
    local tensor = up(at_once * warps, 4) * 2 * nt * tiles * 2048 / (device.peak / 4)
    local issue = at_once * warps / 4 * code.step * of "issue"
    return math.max(tensor, at_once * moved / of "shared", issue) + of "step"
  end
  local through = m.bytes * row_blocks + columns * m.steps * rows * 64
  return blocks, through, steps_of(device, code, blocks, step) * m.steps / m.splits / device.clock
end

-- For a product whose warps have slices of their own: its blocks, the bytes from the second-level cache, and the
-- seconds by steps. A scheduler has a warp of each block.
local function few_rows(device, m, finish, rows, weights)
  local nt = 1
  while nt < MOST_NT and 8 * nt < rows do nt = 2 * nt end
  local kind = weights.packing or "BITS16"
  local code = assert(look_for(device, ("^k_matmul<F16, %s, %%d+, %d, %%d+, %s>"):format(kind, nt, finish)))
  local columns, groups = columns_of(m, tonumber(code.name:match ", (%d+), %d+, %d+, ")), up(rows, 8 * nt)
  local blocks = columns * m.splits * groups
  local clocks = steps_of(device, code, blocks, function(at_once)
    return math.max(at_once * code.step * of "issue", code.step * of "issue" + of "latency")
  end)
  local through = m.bytes * groups + columns * m.steps * rows * 64 * code.blocks ^ -of "rows"
  return blocks, through, clocks * m.steps / m.splits / SLICES / device.clock
end

local function product(pass, name, m, finish)
  local device, rows, packing = pass.device, pass.rows, pass.weights.packing
  m.bytes = m.tiles * m.steps * pass.weights.bytes
  pass.bytes = pass.bytes + m.bytes
  local memory = m.bytes / (device.memory * of "memory") * 1e6
  local alone = columns_of(m, TILES) * m.splits -- as choose() in matmul.cu does
  local fills = not packing and alone <= MULTIPROCESSORS and alone > MULTIPROCESSORS * 9 // 10
  local wide, row_warps, nt = wide_kernel(device, packing, finish, rows)
  local time, blocks, through, clocks
  if wide and (rows > 64 or rows > 32 and fills) then
    blocks, through, clocks = many_rows(device, m, rows, pass.weights, wide, row_warps, nt)
    time = math.max(memory, through / device.cache * 1e6, clocks * 1e6)
  else
    blocks, through, clocks = few_rows(device, m, finish, rows, pass.weights)
    local p = of "overlap"
    time = (memory ^ p + (through / (device.cache * of "cache") * 1e6) ^ p + (clocks * 1e6) ^ p) ^ (1 / p)
  end
  pass:add(name, pass.boundary + time, ("%d blocks, %.1f MB: memory %.1f, cache %.1f, steps %.1f"):format(blocks,
    m.bytes / 1e6, memory, through / device.cache * 1e6, clocks * 1e6))
end

local function norm(pass, model, parts)
  local bytes = pass.rows * model.hidden * (4 * parts + 12)
  pass:add("norm", pass.boundary + of "norm" + bytes / pass.device.cache * 1e6)
end

-- The products of experts. Rows are assumed to choose independently of each other, which real rows do not, so that most
-- experts have one group of pairs.
local function expert_products(pass, model)
  local device, distinct = pass.device, model.experts * (1 - (1 - model.chosen / model.experts) ^ pass.rows)
  pass:add("route", pass.boundary * 2 + of "route")
  for i, m in ipairs { matrix(2 * model.inter, model.hidden), matrix(model.hidden, model.inter) } do
    local bytes = m.tiles * m.steps * distinct * pass.weights.bytes
    pass.bytes = pass.bytes + bytes
    local memory = bytes / (device.memory * of "memory") * 1e6
    m.tiles, m.bytes = m.tiles * distinct, bytes -- groups of up to 8 pairs
    local _, _, clocks = few_rows(device, m, "plain_epilogue", 8, pass.weights)
    local steps = clocks * 1e6
    pass:add(i == 1 and "up" or "down", pass.boundary + math.max(memory, steps),
      ("%.1f experts: memory %.1f, steps %.1f"):format(distinct, memory, steps))
  end
  norm(pass, model, model.chosen) -- their sum
end

-- A delta layer up to its last product. All rows belong to one text, and each block has 32 columns of a value head.
local function delta_layer(pass, model)
  local device, d = pass.device, model.delta
  local values = d.values * d.dim
  product(pass, "in", matrix(2 * d.keys * d.dim + 2 * values + 2 * d.values, model.hidden), "plain_epilogue")
  norm(pass, model, 1) -- the convolution
  pass:add("factors", pass.boundary + of "factors")
  local read = d.values * d.dim * d.dim * 4 / (device.memory * of "memory") * 1e6
  local waves = up(d.values * up(d.dim, 32), device.units)
  pass:add("sums", pass.boundary + read + waves * pass.rows * of "state", ("states %.1f, %d waves"):format(read, waves))
  norm(pass, model, 1) -- the norm and the gate of the sums
end

-- The number of heads that share keys and a block, as in row_batches.h.
local function heads_together(group)
  local heads = math.min(group, TREE_QUERIES)
  while group % heads > 0 or QUERIES % heads > 2 do heads = heads - 1 end
  return heads
end

-- Blocks as rows.cu forms units: rows of a tree after a prefix of `context` positions. Each block reads from the
-- second-level cache; memory is read once. In the end one block adds up the parts of all its lines.
local function attention(pass, model)
  local n, shared = pass.rows, pass.context // SPLIT
  local joined = heads_together(model.heads // model.kv_heads)
  local columns, groups = model.heads // joined, up(n, QUERIES // joined)
  local units = groups * shared + up(n, n * model.heads > PLACES and TREE_QUERIES // joined or 1)
  local blocks = units * columns
  local fullest = up(blocks, pass.device.units)
  local of_head = 2 * pass.context * model.dim * 2
  local read = math.max(of_head * columns * groups / pass.device.cache,
                        of_head * model.kv_heads / (pass.device.memory * of "memory")) * 1e6
  local rounds = up(math.min(n * joined, QUERIES) * model.dim // 4, WARPS * 32)
  local trips = up(shared + 1, AT_ONCE) + up(math.max(shared + 1 - AT_ONCE, 0), AT_ONCE)
  local time = of "attention" + fullest * of "share" + rounds * trips * of "trip"
  pass:add("attention", pass.boundary + math.max(time, read),
    ("%d blocks, %d on the fullest multiprocessor; reading %.1f, %d trips for its parts"):format(blocks, fullest, read,
      rounds * trips))
end

-- ---- a pass ----

local function begin(device, rows, context, weights)
  local pass = { device = device, weights = weights or F16, rows = rows, context = context, total = 0, bytes = 0,
                 lines = {},
                 boundary = of "boundary" + (device.early and 0 or of "independent") }
  function pass:add(name, time, note)
    self.total = self.total + time
    self.lines[#self.lines + 1] = ("    %-10s %7.1f us  %s"):format(name, time, note or "")
  end
  return pass
end

local function estimate(device, model, rows, context, draft)
  local pass = begin(device, rows, context, model.weights)
  local q = (model.heads + 2 * model.kv_heads) * model.dim
  for layer = 1, model.layers do
    norm(pass, model, layer == 1 and 0 or 7)
    if model.sequential then
      if model.paired then norm(pass, model, 0) end
      if model.delta and layer % 4 ~= 0 then
        delta_layer(pass, model)
      else
        product(pass, "qkv", matrix(q, (model.paired and 2 or 1) * model.hidden), "layer_epilogue")
        attention(pass, model)
        if model.delta then
          product(pass, "gates", matrix(model.heads * model.dim, model.hidden), "plain_epilogue")
          norm(pass, model, 1)
        end
      end
      product(pass, "out", matrix(model.hidden, model.heads * model.dim, true), "plain_epilogue")
      norm(pass, model, 4)
      if model.experts then
        expert_products(pass, model)
      else
        product(pass, "up", matrix(2 * model.inter, model.hidden), "layer_epilogue")
        product(pass, "down", matrix(model.hidden, model.inter, true), "plain_epilogue")
      end
    else
      local inner = up(model.inter, 16)
      product(pass, "in", matrix(up(q, 16) * 16 + model.inter, model.hidden, false, inner), "layer_epilogue")
      attention(pass, model)
      product(pass, "out", matrix(model.hidden, model.heads * model.dim + model.inter, true), "plain_epilogue")
    end
  end
  norm(pass, model, 7)
  product(pass, "logits", matrix(model.vocab, model.hidden), "plain_epilogue")
  pass:add("choose", of "candidates" * math.max(1, rows / pass.device.units), draft and "candidates" or "argmax")
  pass:add("host", of "host")
  return pass
end

local CONTEXT = 512

-- ---- estimates of passes that were measured ----

local MOST = 0.15 -- error of an estimate whose measurement no number was chosen by

local function compare_with_measured()
  local kernels, devices, models, wrong, sums = read_kernels "measured.txt", {}, {}, 0, {}
  for _, device in ipairs(DEVICES) do
    devices[device.name] = setmetatable({ kernels = kernels }, { __index = device })
  end
  for _, model in pairs(MODELS) do models[model.name] = model end
  print "        GPU   model         rows  measured  estimated"
  for line in assert(io.lines(HERE .. "results/passes.txt")) do
    local use, gpu, name, rows, us = line:match "^(%l+)%s+(%S+)%s+(.-)%s%s+(%d+)%s+(%d+)$"
    if use then
      rows, us = tonumber(rows), tonumber(us)
      local error_of = estimate(devices[gpu], models[name], rows, CONTEXT).total / us - 1
      local bad = use == "check" and math.abs(error_of) > MOST
      local sum = sums[use] or { n = 0, all = 0 }
      sum.n, sum.all, sums[use] = sum.n + 1, sum.all + math.abs(error_of), sum
      wrong = wrong + (bad and 1 or 0)
      print(("%-6s  %s  %-13s %4d  %8d  %8.0f  %+.0f %%%s"):format(use, gpu, name, rows, us, us * (1 + error_of),
        100 * error_of, bad and "  MISSED" or ""))
    end
  end
  for use, sum in pairs(sums) do print(("%s: mean error %.1f %% of %d"):format(use, 100 * sum.all / sum.n, sum.n)) end
  os.exit(wrong == 0 and 0 or 1)
end
if opts.check then compare_with_measured() end

-- Models, numbers of rows, and the bars for the H200.
local PASSES = {
  { MODELS.pythia, 1, 1750 }, { MODELS.pythia, 16 }, { MODELS.pythia, 32 }, { MODELS.pythia, 64, 3500 },
  { MODELS.pythia, 144 }, { MODELS.pythia, 257, 10000 }, { MODELS.pythia_q4, 1, 1150 }, { MODELS.draft, 8, 120, true },
  { MODELS.llama, 1 }, { MODELS.llama, 16 }, { MODELS.llama, 64 }, { MODELS.llama, 257 }, { MODELS.llama_q4, 1, 2550 },
  { MODELS.llama_q4, 16 }, { MODELS.llama_q4, 64 }, { MODELS.llama_q4, 128 }, { MODELS.llama_q4, 257 },
  { MODELS.eagle3, 8, nil, true }, { MODELS.a3b, 1 }, { MODELS.a3b, 4 }, { MODELS.a3b, 8 }, { MODELS.a3b, 16 },
  { MODELS.oss, 1 }, { MODELS.oss, 4 }, { MODELS.oss, 8 }, { MODELS.oss, 16 },
  { MODELS.qwen35, 1 }, { MODELS.qwen35, 4 }, { MODELS.qwen35, 8 }, { MODELS.qwen35, 16 },
}
if opts.verbose then
  print "Numbers used, apart from data sheets (memory, multiprocessors, clock) and the cache's rate (measured, H100):"
  local names = {}
  for name in pairs(NUMBERS) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do print(("  %-11s %6g  %s"):format(name, NUMBERS[name][1], NUMBERS[name][2])) end
end
local readme = assert(io.open(HERE .. "../../cuda/README.md")):read "a"
local missed = 0
local function row_of(name, rows, cells)
  return ("%-14s %4s %11s %11s %11s %11s %11s"):format(name, rows, table.unpack(cells))
end
-- Prints a line of the table, which must be in cuda/README.md as well.
local function tell(name, rows, cells, bar)
  local line = row_of(name, rows, cells)
  print(line .. (bar or ""))
  if not readme:find(line, 1, true) then
    print "    cuda/README.md has another line"
    missed = missed + 1
  end
end
print(row_of("us, context " .. CONTEXT, "rows", { "H200", "H100", "A100", "4090", "3090" }) .. "   H200: at most")
for _, entry in ipairs(PASSES) do
  local model, rows, bar, draft = entry[1], entry[2], entry[3], entry[4]
  local passes, cells = {}, {}
  for i, device in ipairs(DEVICES) do
    passes[i] = (rows <= 32 or not device.few) and estimate(device, model, rows, CONTEXT, draft)
    cells[i] = passes[i] and ("%.0f"):format(passes[i].total) or "-"
  end
  local failed = bar and passes[1].total > bar
  missed = missed + (failed and 1 or 0)
  if model.experts or model.delta then -- what reading the weights takes at the data sheet's bandwidth
    for i, device in ipairs(DEVICES) do
      cells[i] = cells[i] .. ("/%.0f"):format(passes[i].bytes / device.memory * 1e6)
    end
  end
  tell(model.name, rows, cells, bar and ("   %d%s"):format(bar, failed and " MISSED" or ""))
  if opts.verbose then
    print "    of which, on the H200, the second layer and what follows the last:"
    local kernels = model.experts and 9 or model.delta and 10 or model.sequential and 7 or 4
    local lines, layer = passes[1].lines, kernels + (model.paired and 1 or 0)
    local first = math.min(model.layers - 1, 1) * layer -- the only one, if there is just one
    for i = first + 1, first + layer do print(lines[i]) end
    for i = #lines - 3, #lines do print(lines[i]) end
  end
end
os.exit(missed == 0 and 0 or 1)
