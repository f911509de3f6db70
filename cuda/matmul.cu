/* y = W x for any number of rows of a pass: the weights are the M side of the tensor cores' m16n8k16, the rows the N
 * side.
 *
 * There is one order of summation per shape, whatever the number of rows. k is cut into `splits` parts (blocks; the
 * reader of y sums them), and each part into 4 slices. The tensor core sums a slice step by step; the slices are added
 * in order. Up to 64 rows, a block has 16 outputs or some tiles of 16, and each of its 4 warps takes a slice, of all
 * rows. More rows of packed weights are computed in groups of 64, so that a warp unpacks a tile once for 64 rows. With
 * weights in 16 bits, from 65 rows on (of a product that fills the device once, from 33), a block has 144 outputs of 64
 * or WIDE_ROWS rows; each warp has 48 outputs of some of the rows and takes all slices in turn. A column of a tensor
 * core's product does not depend on the columns next to it.
 *
 *                a part of k, in steps of 32 (s)                    8 rows each
 *                slice 0   slice 1   slice 2   slice 3
 *      tile 0  | s s s s | s s s s | s s s s | s s s s |            x x ..
 *      tile 1  | s s s s | ..
 *      ..        warp 0    warp 1    warp 2    warp 3
 *
 * s is 16 outputs, in pairs, by 32 k: 1 KiB of F16, or a record (record.cuh); x a step of 8 rows, 512 bytes.
 *
 * Weights and activations come through a ring in shared memory, copied DEEP steps of 32 k before they are used
 * (cp.async, which is the same from Ampere on). Loads to registers would do in principle; but if the loop has a branch,
 * the compiler moves loaded values from one register to another and waits for them there: tests/sass checks the machine
 * code for it. Where a warp has a slice of its own it needs no barrier: so this way serves as many rows as registers
 * allow (at 32 rows it took an H200 14 % less time than blocks whose warps share each step, with packed weights 30 %).
 *
 * Memory: at 8 rows a multiprocessor holds 7 blocks of 4 warps, with 5 steps of 1 KiB of weights under way: 140 KiB.
 * Before the kernel waits for the kernel before it, it requests these steps. Asking for more, into the second-level
 * cache, increased the time of a plain token of the 2.8B shape on an H200 by 12 %; a pipeline shorter by one step by 6
 * %, and two tiles per block by 4 %.
 *
 * For blocks of 144 outputs, two things limit the speed: the traffic between the second-level cache and the
 * multiprocessors, which for P bytes of weights and n rows, in blocks of M outputs and N rows, is P (n / N + n / M);
 * and whether the blocks run in whole waves. With 9 tiles of 16 outputs the 2.8B shape's products are 126 blocks, which
 * 132 multiprocessors run at once, also with N = 144. tests/bench/estimate.lua prints the resulting numbers. */
#include "launch.cuh"
#include "matmul_few.cuh"

/* The tiles of a block that takes TILES of them, all before second_from or all from it on. */
struct block_tiles {
  int first, count;
  bool before;
};
template <int TILES> static __device__ __forceinline__ block_tiles tiles_of(const product &p, int block) {
  int middle = p.second_from < p.end_tile ? p.second_from : p.end_tile;
  int blocks_before = (middle - p.first_tile + TILES - 1) / TILES;
  bool before = block < blocks_before;
  int first = before ? p.first_tile + block * TILES : middle + (block - blocks_before) * TILES;
  int left = (before ? middle : p.end_tile) - first;
  return {first, left < TILES ? left : TILES, before};
}

/* Finishes all sums of a block. A thread has one pair of some rows: so what depends on the pair is computed once. */
template <number TYPE, int TILES, int WARPS_OF_BLOCK, class FINISH>
static __device__ __forceinline__ void finish_pairs(const FINISH &f, const float *sums, int slices, int stride,
                                                    int rows, const block_tiles &tiles, int part, int row0, int n) {
  constexpr int PAIRS = 8 * TILES, TURNS = WARPS_OF_BLOCK * WARP / PAIRS;
  int q = threadIdx.x % PAIRS, pair = tiles.first * 8 + q;
  if (q >= tiles.count * 8 || (int)threadIdx.x >= TURNS * PAIRS) return;
  for (int row = threadIdx.x / PAIRS; row < rows && row0 + row < n; row += TURNS)
    finish_pair<TYPE>(f, sums, slices, stride, rows, pair, q, row, target_of<TYPE>(f, pair, part, row0 + row));
}

template <number TYPE, packing P, int TILES, int NT, int DEEP, class FINISH>
static __global__ __launch_bounds__(WARPS *WARP, few<P, TILES, NT, DEEP>::BLOCKS) void k_matmul(product p, FINISH f) {
  using of = few<P, TILES, NT, DEEP>;
  DYNAMIC_SHARED_OF(uint4, shared, of::SHARED);
  dependency_release();
  int row0 = NT == MOST_NT ? (int)blockIdx.x * 8 * NT : 0;
  if (row0 && row0 >= *p.n) return dependency_wait();
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  block_tiles tiles = tiles_of<TILES>(p, (int)blockIdx.y);
  int part = blockIdx.z, part_first = p.m.steps * part / p.m.splits;
  int part_steps = p.m.steps * (part + 1) / p.m.splits - part_first;
  int step = part_first + part_steps * warp / SLICES, end = part_first + part_steps * (warp + 1) / SLICES;
  uint4 *ring = shared + warp * of::EACH;
  const uint4 *weights[TILES];
#pragma unroll
  for (int i = 0; i < TILES; i++) /* past the last tile: its sums are not used */
    weights[i] = p.m.data + (size_t)(tiles.first + (i < tiles.count ? i : 0)) * p.m.steps * of::PIECES;
  auto copy_weights = [&](int at, uint4 *stage, bool wanted) { copy_tiles<P>(stage, weights, at, lane, wanted); };
#pragma unroll
  for (int i = 0; i < DEEP; i++) copy_weights(step + i, ring + i * of::STAGE, step + i < end);
  int n = *p.n - row0;
  constexpr bool EARLY = of::SPOTS <= 2; /* whether registers have room for the places of sums */
  target_type<TYPE, FINISH> spot[EARLY ? of::SPOTS : 1];
#pragma unroll
  for (int i = 0; EARLY && i < of::SPOTS; i++) {
    int item = threadIdx.x + i * WARPS * WARP, row = item / (8 * TILES), q = item % (8 * TILES);
    spot[i] = {};
    if (row < n && row < 8 * NT && q < tiles.count * 8) spot[i] = target_of<TYPE>(f, tiles.first * 8 + q, part, row);
  }
  dependency_wait();

  const uint4 *input =
      reinterpret_cast<const uint4 *>(tiles.before ? p.input.at : p.second.at) + (size_t)(row0 / 8) * p.input.ld + lane;
  /* missing rows: what is left in their columns does not affect others */
  auto copy_rows = [&](int at, uint4 *stage, bool wanted) {
#pragma unroll
    for (int j = 0; j < NT; j++)
      copy_cached_if(wanted && 8 * j + lane / 4 < n, stage + TILES * of::PIECES + j * WARP + lane,
                     input + j * p.input.ld + (size_t)at * WARP);
  };
  sum_slice<TYPE, P, TILES, NT, DEEP>(ring, step, end, p.m.table, lane, copy_weights, copy_rows);

  constexpr int STRIDE = of::EACH * (int)(sizeof(uint4) / sizeof(float)); /* from one warp's ring to the next */
  float *sums = reinterpret_cast<float *>(shared);
  __syncthreads();
  if constexpr (EARLY) {
#pragma unroll
    for (int i = 0; i < of::SPOTS; i++) {
      int item = threadIdx.x + i * WARPS * WARP, row = item / (8 * TILES), q = item % (8 * TILES);
      if (row < n && row < 8 * NT && q < tiles.count * 8)
        finish_pair<TYPE>(f, sums, SLICES, STRIDE, 8 * NT, tiles.first * 8 + q, q, row, spot[i]);
    }
  } else {
    finish_pairs<TYPE, TILES, WARPS>(f, sums, SLICES, STRIDE, 8 * NT, tiles, part, row0, row0 + n);
  }
}

/* Many rows: a block has 8 NT ROW_WARPS of them, a warp WARP_TILES tiles of 8 NT rows. The ring is [DEEP + 1][tiles,
 * then blocks of 8 rows]; the extra stage is the one that the last step read, when the next copy begins. The sums of
 * the slices so far are stored in registers or in shared memory, where the 16 bytes of a thread are next to those of
 * the next thread. A block has tiles before second_from or from it on, never both. */
constexpr int TILE_WARPS = 3;

template <int TILES, int NT, int ROW_WARPS, int DEEP> struct tiling {
  static constexpr int PIECES = pieces_of(BITS16), WARP_TILES = TILES / TILE_WARPS, WARPS = TILE_WARPS * ROW_WARPS,
                       ROWS8 = NT * ROW_WARPS, ROWS = 8 * ROWS8;
  static constexpr int STAGE = TILES * PIECES + ROWS8 * WARP, RING = (DEEP + 1) * STAGE;
  static constexpr int EACH = WARP_TILES * NT,
                       TOTALS = EACH > 12 || WARPS > 12 ? EACH *WARPS *WARP : 0; /* in shared memory; 0: in registers */
  static constexpr int SUMS = TILES * ROWS * PITCH / 4,
                       SHARED = (RING + TOTALS > SUMS ? RING + TOTALS : SUMS) * (int)sizeof(uint4);
  static constexpr int WEIGHTS = (TILES * PIECES + WARPS * WARP - 1) / (WARPS * WARP); /* a thread's copies */
  static constexpr int INPUTS = (ROWS8 + WARPS - 1) / WARPS;
};

template <number TYPE, int TILES, int NT, int ROW_WARPS, int DEEP, class FINISH>
static __global__ __launch_bounds__(tiling<TILES, NT, ROW_WARPS, DEEP>::WARPS *WARP) void k_matmul_wide(product p,
                                                                                                        FINISH f) {
  using of = tiling<TILES, NT, ROW_WARPS, DEEP>;
  constexpr int WARP_TILES = of::WARP_TILES;
  DYNAMIC_SHARED_OF(uint4, shared, of::SHARED);
  dependency_release();
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  block_tiles tiles = tiles_of<TILES>(p, (int)blockIdx.y);
  int part = blockIdx.z;
  int first = p.m.steps * part / p.m.splits, end = p.m.steps * (part + 1) / p.m.splits,
      row0 = (int)blockIdx.x * of::ROWS;

  uint4 *ring = shared;
  constexpr int THREADS = of::WARPS * WARP;
  const uint4 *weights[of::WEIGHTS];
#pragma unroll
  for (int i = 0; i < of::WEIGHTS; i++) {
    int item = (int)threadIdx.x + i * THREADS, tile = item / of::PIECES;
    if (tile >= tiles.count) tile = tiles.count - 1; /* past the last tile: its sums are not used */
    weights[i] = p.m.data + (size_t)(tiles.first + tile) * p.m.steps * of::PIECES + item % of::PIECES;
  }
  auto copy_weights = [&](int at, uint4 *stage) {
#pragma unroll
    for (int i = 0; i < of::WEIGHTS; i++)
      if ((i + 1) * THREADS <= TILES * of::PIECES || (int)threadIdx.x + i * THREADS < TILES * of::PIECES)
        copy_stream(stage + threadIdx.x + i * THREADS, weights[i] + (size_t)at * of::PIECES);
  };
#pragma unroll
  for (int i = 0; i < DEEP; i++)
    if (first + i < end) copy_weights(first + i, ring + i * of::STAGE);
  int n = *p.n,
      rows8 = (n - row0 + 7) / 8 < of::ROWS8 ? (n - row0 + 7) / 8 : of::ROWS8; /* the block's blocks of 8 rows */
  dependency_wait();

  const uint4 *input =
      reinterpret_cast<const uint4 *>(tiles.before ? p.input.at : p.second.at) + (size_t)(row0 / 8) * p.input.ld + lane;
  auto copy_rows = [&](int at, uint4 *stage) {
#pragma unroll
    for (int i = 0; i < of::INPUTS; i++) {
      int j = warp + i * of::WARPS;
      if (j < rows8) copy_stream(stage + TILES * of::PIECES + j * WARP + lane, input + j * p.input.ld + at * WARP);
    }
  };
#pragma unroll
  for (int i = 0; i < DEEP; i++) { /* the first group also has the weights requested above */
    if (first + i < end) copy_rows(first + i, ring + i * of::STAGE);
    copies_commit();
  }
  int my_tile = warp % TILE_WARPS * WARP_TILES, my_rows8 = warp / TILE_WARPS * NT;
  float4 own[of::TOTALS ? 1 : of::EACH], *kept = reinterpret_cast<float4 *>(shared + of::RING) + threadIdx.x;
  float sum[WARP_TILES][NT][4];
  int step = first, read = 0, filled = DEEP; /* stages of the ring */
#pragma unroll 1
  for (int slice = 0; slice < SLICES; slice++) {
#pragma unroll
    for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
      for (int j = 0; j < NT; j++)
        for (int i = 0; i < 4; i++) sum[m][j][i] = 0.0f;
    int slice_end = first + (end - first) * (slice + 1) / SLICES;
#pragma unroll 1
    for (; step < slice_end; step++) {
      copies_wait<DEEP - 1>();
      __syncthreads(); /* this step has arrived, and no warp reads the step before it any more */
      if (step + DEEP < end)
        copy_weights(step + DEEP, ring + filled * of::STAGE), copy_rows(step + DEEP, ring + filled * of::STAGE);
      copies_commit();
      const uint4 *stage = ring + read * of::STAGE;
      filled = read;
      read = read < DEEP ? read + 1 : 0;
      if (my_rows8 >= rows8) continue;
      uint4 a[WARP_TILES][2], x[NT];
#pragma unroll
      for (int m = 0; m < WARP_TILES; m++)
        take_weights<BITS16>(a[m], stage + (my_tile + m) * of::PIECES, lane, p.m.table);
#pragma unroll
      for (int j = 0; j < NT; j++) x[j] = stage[TILES * of::PIECES + (my_rows8 + j) * WARP + lane];
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
          for (int m = 0; m < WARP_TILES; m++) multiply_half<TYPE>(sum[m][j], a[m][h], x[j], h);
    }
#pragma unroll
    for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
      for (int j = 0; j < NT; j++) {
        float4 &total = of::TOTALS ? kept[(m * NT + j) * of::WARPS * WARP] : own[of::TOTALS ? 0 : m * NT + j];
        float(&v)[4] = sum[m][j];
        if (slice) v[0] += total.x, v[1] += total.y, v[2] += total.z, v[3] += total.w;
        total = make_float4(v[0], v[1], v[2], v[3]);
      }
  }
  float *sums = reinterpret_cast<float *>(shared); /* [TILES][ROWS][PITCH] */
  __syncthreads();                                 /* all has been read */
#pragma unroll
  for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
    for (int j = 0; j < NT; j++) put_sums(sums + ((my_tile + m) * of::ROWS + 8 * (my_rows8 + j)) * PITCH, sum[m][j]);
  __syncthreads();
  finish_pairs<TYPE, TILES, of::WARPS>(f, sums, 1, 0, of::ROWS, tiles, part, row0, n);
}

/* Number of blocks with this number of tiles. */
static int columns_of(const product &p, int tiles) {
  int middle = p.second_from < p.end_tile ? p.second_from : p.end_tile;
  return blocks_of(middle - p.first_tile, tiles) + blocks_of(p.end_tile - middle, tiles);
}

template <number TYPE, packing P, int TILES, int NT, int DEEP, class FINISH>
static cudaError_t start_few(const queue &stream, const product &p, const FINISH &f, int rows) {
  dim3 grid((unsigned)blocks_of(rows, 8 * NT), (unsigned)columns_of(p, TILES), (unsigned)p.m.splits);
  return launch(stream, grid, WARPS * WARP, few<P, TILES, NT, DEEP>::SHARED, k_matmul<TYPE, P, TILES, NT, DEEP, FINISH>,
                p, f);
}

template <number TYPE, int TILES, int NT, int ROW_WARPS, int DEEP, class FINISH>
static cudaError_t start_tiles(const queue &stream, const product &p, const FINISH &f, int rows) {
  using of = tiling<TILES, NT, ROW_WARPS, DEEP>;
  dim3 grid((unsigned)blocks_of(rows, of::ROWS), (unsigned)columns_of(p, TILES), (unsigned)p.m.splits);
  return launch(stream, grid, of::WARPS * WARP, of::SHARED, k_matmul_wide<TYPE, TILES, NT, ROW_WARPS, DEEP, FINISH>, p,
                f);
}

/* Whether a block may have this much shared memory, as on an A100 or H100. Other devices compute 64 rows at a time,
 * which gives the same bits. */
static bool has_room(int bytes) {
  int device = 0, most = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess && bytes <= most;
}
constexpr int WIDEST_NT = 3, WIDEST_WARPS = WIDE_ROWS / (8 * WIDEST_NT), WIDE_DEEP = 5, WIDEST_DEEP = 3;
using wide = tiling<BLOCK_TILES, 2, 4, WIDE_DEEP>;
using widest = tiling<BLOCK_TILES, WIDEST_NT, WIDEST_WARPS, WIDEST_DEEP>;

/* Tiles of a block of two, four and eight blocks of 8 rows, and steps under way. A tile's sums are the same, whatever
 * the number of tiles of its block and of warps that share the rows: the numbers were chosen on an H200. Packed weights
 * take two tiles at 16 rows, so that a block's rows serve more of them. */
template <packing P> constexpr int DEEP_8 = P == BITS16 ? 5 : 6;
template <packing P> constexpr int TILES_16 = P == BITS16 ? 1 : 2;
constexpr int DEEP_16 = 4, TILES_32 = 3, DEEP_32 = 3, TILES_64 = 4, DEEP_64 = 2;

/* Weights in 16 bits and more than 32 rows. A product that gives nearly every multiprocessor one block of BLOCK_TILES
 * tiles is computed so up to 64 rows, too: many warps share the block. */
template <number TYPE, class FINISH>
static cudaError_t choose_wide(const queue &stream, const product &p, const FINISH &f, int rows) {
  int blocks = columns_of(p, BLOCK_TILES) * p.m.splits;
  if (rows == 64 && (blocks > MULTIPROCESSORS || blocks <= MULTIPROCESSORS * 9 / 10))
    return start_few<TYPE, BITS16, TILES_64, MOST_NT, DEEP_64>(stream, p, f, rows);
  if (rows == 64 || !has_room(widest::SHARED))
    return start_tiles<TYPE, BLOCK_TILES, 2, 4, WIDE_DEEP>(stream, p, f, rows);
  return start_tiles<TYPE, BLOCK_TILES, WIDEST_NT, WIDEST_WARPS, WIDEST_DEEP>(stream, p, f, rows);
}

template <number TYPE, packing P, class FINISH>
static cudaError_t choose(const queue &stream, const product &p, const FINISH &f, int rows) {
  if (rows == 8) return start_few<TYPE, P, 1, 1, DEEP_8<P>>(stream, p, f, rows);
  if (rows == 16) return start_few<TYPE, P, TILES_16<P>, 2, DEEP_16>(stream, p, f, rows);
  if (rows == 32) return start_few<TYPE, P, TILES_32, 4, DEEP_32>(stream, p, f, rows);
  if constexpr (P == BITS16) return choose_wide<TYPE>(stream, p, f, rows);
  return start_few<TYPE, P, TILES_64, MOST_NT, DEEP_64>(stream, p, f, rows);
}

template <class... P> static cudaError_t allow(void (*kernel)(P...), int shared) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
}

template <number TYPE, packing P, class FINISH> static cudaError_t prepare() {
  cudaError_t e = allow(k_matmul<TYPE, P, TILES_32, 4, DEEP_32, FINISH>, few<P, TILES_32, 4, DEEP_32>::SHARED);
  if (!e) e = allow(k_matmul<TYPE, P, TILES_64, MOST_NT, DEEP_64, FINISH>, few<P, TILES_64, MOST_NT, DEEP_64>::SHARED);
  if (e || P != BITS16) return e;
  e = allow(k_matmul_wide<TYPE, BLOCK_TILES, 2, 4, WIDE_DEEP, FINISH>, wide::SHARED);
  if (e || !has_room(widest::SHARED)) return e;
  return allow(k_matmul_wide<TYPE, BLOCK_TILES, WIDEST_NT, WIDEST_WARPS, WIDEST_DEEP, FINISH>, widest::SHARED);
}

template <number TYPE, packing P> static cudaError_t prepare_both() {
  cudaError_t e = prepare<TYPE, P, plain_epilogue>();
  return e ? e : prepare<TYPE, P, layer_epilogue>();
}

cudaError_t multiply_prepare(number type) {
  if (type == BF16) return prepare_both<BF16, BITS16>();
  cudaError_t e = prepare_both<F16, BITS16>();
  if (!e) e = prepare_both<F16, BITS3>();
  if (!e) e = prepare_both<F16, BITS4>();
  if (!e) e = prepare_both<F16, TABLE4>();
  if (!e) e = prepare_both<F16, BITS5>();
  if (!e) e = prepare_both<F16, BITS6>();
  return e ? e : prepare_both<F16, BITS8>();
}

template <class FINISH>
static cudaError_t choose_packing(const queue &stream, const product &p, const FINISH &f, int rows) {
  return for_packing(p.m, [&]<number TYPE, packing P>() { return choose<TYPE, P>(stream, p, f, rows); });
}

cudaError_t multiply_plain(const queue &stream, const product &p, const plain_epilogue &f, int rows) {
  return choose_packing(stream, p, f, rows);
}

cudaError_t multiply_layer(const queue &stream, const product &p, const layer_epilogue &f, int rows) {
  return choose_packing(stream, p, f, rows);
}
