/* y = W x for any number of rows of a pass: the weights are the M side of the tensor cores' m16n8k16, rows the N side.
 *
 * One order of summation per shape, whatever the number of rows: k is cut into `splits` parts (blocks, summed by whoever
 * reads them), each part into 4 slices; a slice is summed by the tensor core step by step, the slices are added in order.
 * Up to 16 rows, a block has 16 outputs and its 4 warps take a slice each; up to 32, a block has 64 outputs and each warp
 * takes all slices of 16 of them in turn, so that the activations, which now weigh as much as the weights, are read once
 * for 64 outputs; from 33 on, 128 outputs of 64 or of WIDE_ROWS rows, each warp 32 outputs of half the rows. A column of a
 * tensor core's product does not depend on the columns beside it.
 *
 * Memory: a lane keeps the loads of 4 steps (8 x 16 bytes) in flight, a warp 4 KiB. At 8 rows 16 to 20 warps fit a
 * multiprocessor: 64 KiB and more, against the about 30 KiB that 4.8 TB/s at 0.8 us over 132 multiprocessors need. The
 * first 4 steps, and the rest of the block's weights into the second-level cache, are asked for before the kernel waits
 * for the one before it, whose time is thus spent reading too.
 *
 * From 33 rows on what counts is what passes between the second-level cache and the multiprocessors: of P bytes of
 * weights, with n rows in blocks of M outputs and N rows, P (n / N + n / M); and whether the blocks are gone through in
 * whole waves. At 64 rows of the 2.8B shape's first product (92 MB, 21 us at 4.3 TB/s), blocks of 64 x 64 are 2 P, 33 us at
 * 5.5 TB/s, and 280 on 264 places; 128 x 64 are 1.5 P, 25 us, and all in place at once. At 257 rows a pass is 53 GB with
 * 64 x 64 (9.6 ms), 21 GB with 128 x 144 (3.9 ms), where the products alone take 2.5 to 3.5 ms. */
#include "launch.cuh"
#include "spread.cuh"

constexpr int WARPS = 4, SLICES = 4, DEPTH = 4, PREFETCH = 32 << 10;

template <number TYPE, class FINISH> using spot_type = decltype(spot_of<TYPE>(FINISH{}, 0, 0, 0));

/* Of a block: sums [tiles][rows][16 outputs], or, where there is one tile, [slices][rows][16 outputs] to be added. Lies in
 * shared memory, so that neighbours finish neighbouring pairs. `spots`: null, or of each thread's only pair. */
template <number TYPE, class FINISH>
static __device__ __forceinline__ void finish_block(const FINISH &f, const float *sums, int slices, int rows, int first_tile, int tiles,
                                                    int part, int row0, int n, const spot_type<TYPE, FINISH> *spots) {
  for (int item = threadIdx.x; item < tiles * 8 * rows; item += blockDim.x) {
    int q = item % (tiles * 8), row = item / (tiles * 8), pair = first_tile * 8 + q;
    if (row0 + row >= n) continue;
    float v[2];
    for (int i = 0; i < 2; i++) {
      const float *from = sums + (q / 8 * rows + row) * 16 + q % 8 + 8 * i;
      v[i] = from[0];
      for (int s = 1; s < slices; s++) v[i] += from[s * rows * 16];
    }
    finish<TYPE>(f, pair, spots ? spots[item] : spot_of<TYPE>(f, pair, part, row0 + row), v[0], v[1]);
  }
}

/* Of shared memory: [warp][8 NT rows][16 outputs] sums, then, with one pair or none for each thread, their spots. */
template <int NT> constexpr size_t SUMS = WARPS * 8 * NT * 16;
template <number TYPE, int NT, class FINISH> constexpr size_t shared_bytes() {
  return sizeof(float) * SUMS<NT> + (NT > 2 ? 0 : sizeof(spot_type<TYPE, FINISH>) * WARPS * WARP);
}

/* NT: blocks of 8 rows. */
template <number TYPE, int NT, class FINISH> static __global__ __launch_bounds__(WARPS *WARP) void k_matmul(product p, FINISH f) {
  dependency_release();
  constexpr bool MANY = NT > 2;
  constexpr int TILES = MANY ? WARPS : 1; /* of 8 pairs that a block computes */
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int block_tile = p.first_tile + (int)blockIdx.y * TILES, tile = block_tile + (MANY ? warp : 0);
  int part = blockIdx.z, part_first = p.m.steps * part / p.m.splits;
  int part_steps = p.m.steps * (part + 1) / p.m.splits - part_first;
  int slice = MANY ? 0 : warp, last_slice = MANY ? SLICES : warp + 1;
  int step = part_first + part_steps * slice / SLICES, end = part_first + part_steps * last_slice / SLICES;
  int row0 = (int)blockIdx.x * 8 * NT;
  if (tile >= p.end_tile) end = step;

  const uint4 *weights = p.m.data + (size_t)tile * p.m.steps * 64 + lane;
  uint4 a[DEPTH][2];
#pragma unroll
  for (int i = 0; i < DEPTH; i++)
    if (step + i < end)
      for (int h = 0; h < 2; h++) a[i][h] = load_stream(weights + (size_t)(step + i) * 64 + h * 32);
  if (lane == 0 && end > step + DEPTH) {
    unsigned bytes = (unsigned)(end - step - DEPTH) * 1024;
    prefetch(weights + (size_t)(step + DEPTH) * 64, bytes < PREFETCH / WARPS ? bytes : PREFETCH / WARPS);
  }
  int n = *p.n;
  if (row0 >= n) return dependency_wait();
  DYNAMIC_SHARED(float, shared);
  auto spots = MANY ? nullptr : reinterpret_cast<spot_type<TYPE, FINISH> *>(shared + SUMS<NT>);
  int item = threadIdx.x, item_row = row0 + item / 8; /* see finish_block */
  if (!MANY && item < 8 * 8 * NT && item_row < n) spots[item] = spot_of<TYPE>(f, block_tile * 8 + item % 8, part, item_row);
  dependency_wait();

  const uint16_t *input = (tile < p.second_from ? p.input : p.second) + (size_t)(row0 + g) * p.ld + 8 * t;
  float sum[NT][4], total[NT][4];
#pragma unroll
  for (int j = 0; j < NT; j++)
    for (int i = 0; i < 4; i++) sum[j][i] = total[j][i] = 0.0f;
  uint4 x[2][NT];
  if (step < end)
#pragma unroll
    for (int j = 0; j < NT; j++) x[0][j] = *reinterpret_cast<const uint4 *>(input + (size_t)8 * j * p.ld + 32 * step);
  int slice_end = part_first + part_steps * (slice + 1) / SLICES;
  for (; step < end; step += DEPTH) {
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
      if (step + i >= end) break;
      while (MANY && step + i == slice_end) { /* a slice may be empty */
#pragma unroll
        for (int j = 0; j < NT; j++)
          for (int c = 0; c < 4; c++) total[j][c] += sum[j][c], sum[j][c] = 0.0f;
        slice_end = part_first + part_steps * (++slice + 1) / SLICES;
      }
      if (step + i + 1 < end)
#pragma unroll
        for (int j = 0; j < NT; j++)
          x[(i + 1) % 2][j] = *reinterpret_cast<const uint4 *>(input + (size_t)8 * j * p.ld + 32 * (step + i + 1));
      uint4 now[2] = {a[i][0], a[i][1]};
      if (step + i + DEPTH < end)
#pragma unroll
        for (int h = 0; h < 2; h++) a[i][h] = load_stream(weights + (size_t)(step + i + DEPTH) * 64 + h * 32);
#pragma unroll
      for (int j = 0; j < NT; j++) {
        unsigned low[2] = {x[i % 2][j].x, x[i % 2][j].y}, high[2] = {x[i % 2][j].z, x[i % 2][j].w};
        unsigned first[4] = {now[0].x, now[0].y, now[0].z, now[0].w}, second[4] = {now[1].x, now[1].y, now[1].z, now[1].w};
        mma<TYPE>(sum[j], first, low);
        mma<TYPE>(sum[j], second, high);
      }
    }
  }

  float *mine = shared + warp * 8 * NT * 16;
#pragma unroll
  for (int j = 0; j < NT; j++)
    for (int i = 0; i < 4; i++) {
      float v = MANY ? total[j][i] + sum[j][i] : sum[j][i];
      mine[(8 * j + 2 * t + i % 2) * 16 + g + i / 2 * 8] = v;
    }
  __syncthreads();
  int tiles = p.end_tile - block_tile < TILES ? p.end_tile - block_tile : TILES;
  finish_block<TYPE>(f, shared, MANY ? 1 : SLICES, 8 * NT, block_tile, tiles, part, row0, n, spots);
}

/* Many rows, 16 NT of them in a block: warps 2 i and 2 i + 1 have WIDE_TILES tiles each of half the rows. What the slices so
 * far came to is kept in shared memory. Tiles before second_from and those behind are not mixed in a block. */
constexpr int WIDE_WARPS = 8, WIDE_TILES = 2, BLOCK_TILES = WIDE_WARPS / 2 * WIDE_TILES, AHEAD = 16;

/* On a multiprocessor at once. */
template <int NT> constexpr int BLOCKS = NT <= 4 ? 2 : 1;

template <number TYPE, int NT, class FINISH>
static __global__ __launch_bounds__(WIDE_WARPS *WARP, BLOCKS<NT>) void k_matmul_wide(product p, FINISH f) {
  constexpr int BLOCK_ROWS = 16 * NT;
  DYNAMIC_SHARED(float, totals); /* [BLOCK_TILES][BLOCK_ROWS][16 outputs] */
  dependency_release();
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int middle = p.second_from < p.end_tile ? p.second_from : p.end_tile;
  int blocks_before = (middle - p.first_tile + BLOCK_TILES - 1) / BLOCK_TILES;
  bool before = (int)blockIdx.y < blocks_before;
  int block_tile = before ? p.first_tile + (int)blockIdx.y * BLOCK_TILES : middle + ((int)blockIdx.y - blocks_before) * BLOCK_TILES;
  int tiles = (before ? middle : p.end_tile) - block_tile, part = blockIdx.z;
  int step = p.m.steps * part / p.m.splits, end = p.m.steps * (part + 1) / p.m.splits, part_steps = end - step;
  int row0 = (int)blockIdx.x * BLOCK_ROWS, my_row = warp % 2 * 8 * NT, my_tile = warp / 2 * WIDE_TILES;

  const uint4 *weights[WIDE_TILES];
  uint4 a[2][WIDE_TILES][2], x[2][NT];
#pragma unroll
  for (int m = 0; m < WIDE_TILES; m++) {
    int tile = my_tile + m < tiles ? my_tile + m : tiles - 1; /* behind the last one: its sums are not used */
    weights[m] = p.m.data + (size_t)(block_tile + tile) * p.m.steps * 64 + lane;
    if (lane == 0 && step < end) prefetch(weights[m] + (size_t)step * 64, (unsigned)(part_steps < AHEAD ? part_steps : AHEAD) * 1024);
  }
  int n = *p.n;
  dependency_wait();
  if (row0 >= n) return;
  int left = (n - row0 - my_row + 7) / 8, mine = left < NT ? left : NT; /* blocks of 8 rows; may be negative */

  const uint16_t *input = (before ? p.input : p.second) + (size_t)(row0 + my_row + g) * p.ld + 8 * t;
  auto load = [&](int at, uint4 (&to_a)[WIDE_TILES][2], uint4 (&to_x)[NT]) {
#pragma unroll
    for (int m = 0; m < WIDE_TILES; m++)
      for (int h = 0; h < 2; h++) to_a[m][h] = load_shared_stream(weights[m] + (size_t)at * 64 + h * 32);
#pragma unroll
    for (int j = 0; j < NT; j++)
      if (j < mine) to_x[j] = *reinterpret_cast<const uint4 *>(input + (size_t)8 * j * p.ld + 32 * at);
  };
  float sum[WIDE_TILES][NT][4];
  bool begun = false;
  auto end_slice = [&] { /* every lane has numbers of its own */
#pragma unroll
    for (int m = 0; m < WIDE_TILES; m++)
#pragma unroll
      for (int j = 0; j < NT; j++)
        for (int i = 0; i < 4; i++) {
          int row = my_row + 8 * j + 2 * t + i % 2;
          float *total = totals + ((my_tile + m) * BLOCK_ROWS + row) * 16 + g + i / 2 * 8;
          *total = (begun ? *total : 0.0f) + sum[m][j][i];
          sum[m][j][i] = 0.0f;
        }
    begun = true;
  };
#pragma unroll
  for (int m = 0; m < WIDE_TILES; m++)
#pragma unroll
    for (int j = 0; j < NT; j++)
      for (int i = 0; i < 4; i++) sum[m][j][i] = 0.0f;

  int first = step, slice = 0, slice_end = first + part_steps / SLICES;
  if (step < end) load(step, a[0], x[0]);
  for (; step < end; step += 2) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int at = step + i;
      if (at >= end) break;
      while (at == slice_end) { /* a slice may be empty */
        end_slice();
        slice_end = first + part_steps * (++slice + 1) / SLICES;
      }
      if (lane == 0 && at + AHEAD < end)
        for (int m = 0; m < WIDE_TILES; m++) prefetch(weights[m] + (size_t)(at + AHEAD) * 64, 1024);
      if (at + 1 < end) load(at + 1, a[1 - i], x[1 - i]);
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
          if (j >= mine) continue;
          unsigned k_of[2] = {h ? x[i][j].z : x[i][j].x, h ? x[i][j].w : x[i][j].y};
#pragma unroll
          for (int m = 0; m < WIDE_TILES; m++) {
            unsigned outputs[4] = {a[i][m][h].x, a[i][m][h].y, a[i][m][h].z, a[i][m][h].w};
            mma<TYPE>(sum[m][j], outputs, k_of);
          }
        }
    }
  }
  end_slice();
  __syncthreads();
  finish_block<TYPE>(f, totals, 1, BLOCK_ROWS, block_tile, tiles < BLOCK_TILES ? tiles : BLOCK_TILES, part, row0, n,
                     nullptr);
}

template <int NT> constexpr size_t WIDE_SHARED = sizeof(float) * BLOCK_TILES * 16 * NT * 16;

template <number TYPE, int NT, class FINISH>
static cudaError_t start_wide(cudaStream_t stream, const product &p, const FINISH &f, int rows) {
  int middle = p.second_from < p.end_tile ? p.second_from : p.end_tile;
  int blocks = blocks_of(middle - p.first_tile, BLOCK_TILES) + blocks_of(p.end_tile - middle, BLOCK_TILES);
  dim3 grid((unsigned)(rows / (16 * NT)), (unsigned)blocks, (unsigned)p.m.splits);
  return launch(stream, grid, WIDE_WARPS * WARP, WIDE_SHARED<NT>, k_matmul_wide<TYPE, NT, FINISH>, p, f);
}

constexpr int WIDE_NT = WIDE_ROWS / 16; /* those of 64 rows need no more shared memory than any kernel has */

template <number TYPE, class FINISH> static cudaError_t prepare() {
  return cudaFuncSetAttribute(k_matmul_wide<TYPE, WIDE_NT, FINISH>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int)WIDE_SHARED<WIDE_NT>);
}

cudaError_t multiply_prepare(number type) {
  cudaError_t e = type == F16 ? prepare<F16, store>() : prepare<BF16, store>();
  return e ? e : type == F16 ? prepare<F16, spread>() : prepare<BF16, spread>();
}

template <number TYPE, int NT, class FINISH>
static cudaError_t start(cudaStream_t stream, const product &p, const FINISH &f, int rows) {
  int tiles = NT > 2 ? WARPS : 1;
  dim3 grid((unsigned)(rows / (8 * NT)), (unsigned)blocks_of(p.end_tile - p.first_tile, tiles), (unsigned)p.m.splits);
  return launch(stream, grid, WARPS * WARP, shared_bytes<TYPE, NT, FINISH>(), k_matmul<TYPE, NT, FINISH>, p, f);
}

template <number TYPE, class FINISH>
static cudaError_t choose(cudaStream_t stream, const product &p, const FINISH &f, int rows) {
  switch (rows) {
  case 8: return start<TYPE, 1>(stream, p, f, rows);
  case 16: return start<TYPE, 2>(stream, p, f, rows);
  case 32: return start<TYPE, 4>(stream, p, f, rows);
  case 64: return start_wide<TYPE, 4>(stream, p, f, rows);
  default: return start_wide<TYPE, WIDE_NT>(stream, p, f, rows);
  }
}

cudaError_t multiply_store(cudaStream_t stream, number type, const product &p, const store &f, int rows) {
  return type == F16 ? choose<F16>(stream, p, f, rows) : choose<BF16>(stream, p, f, rows);
}

cudaError_t multiply_spread(cudaStream_t stream, number type, const product &p, const spread &f, int rows) {
  return type == F16 ? choose<F16>(stream, p, f, rows) : choose<BF16>(stream, p, f, rows);
}
