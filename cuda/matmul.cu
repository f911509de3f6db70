/* y = W x for 1 to 320 rows: the weights are the M side of the tensor cores' m16n8k16, rows the N side.
 *
 * One order of summation per shape, whatever the number of rows: k is cut into `splits` parts (blocks, summed by whoever
 * reads them), each part into 4 slices; a slice is summed by the tensor core step by step, the slices are added in order.
 * Up to 16 rows, a block has 16 outputs and its 4 warps take a slice each; from 32 on, a block has 64 outputs and each
 * warp takes all slices of 16 of them in turn, so that the activations, which now weigh as much as the weights, are read
 * once for 64 outputs. A column of a tensor core's product does not depend on the columns beside it.
 *
 * Memory: a lane keeps the loads of 4 steps (8 x 16 bytes) in flight, a warp 4 KiB. At 8 rows 16 to 20 warps fit a
 * multiprocessor: 64 KiB and more, against the about 30 KiB that 4.8 TB/s at 0.8 us over 132 multiprocessors need. The
 * first 4 steps, and the rest of the block's weights into the second-level cache, are asked for before the kernel waits
 * for the one before it, whose time is thus spent reading too. */
#include "launch.cuh"
#include "matmul.cuh"

constexpr int WARPS = 4, SLICES = 4, DEPTH = 4, PREFETCH = 32 << 10;

static __device__ __forceinline__ float activate(dt_act_kind act, float x) {
  switch (act) {
  case DT_ACT_GELU_ERF: return x * 0.5f * (1.0f + erff(x * 0.70710678f));
  case DT_ACT_GELU_TANH: return x / (1.0f + expf(x * fmaf(x * x, -0.0713548163f, -1.59576912f)));
  case DT_ACT_SILU: return x / (1.0f + expf(-x));
  }
  return x;
}

template <number TYPE> static __device__ __forceinline__ void finish(const store &s, int pair, int part, int row, float a, float b) {
  float *out = s.out + part * s.part_stride + (size_t)row * s.outputs;
  if (2 * pair < s.outputs) out[2 * pair] = a;
  if (2 * pair + 1 < s.outputs) out[2 * pair + 1] = b;
}

template <number TYPE> static __device__ __forceinline__ void finish(const spread &s, int pair, int, int row, float a, float b) {
  float2 bias = s.bias[pair];
  a += bias.x, b += bias.y;
  if (pair >= s.inner_from) {
    uint16_t *inner = s.inner + (size_t)row * s.inner_ld;
    int i = pair - s.inner_from;
    if (s.gated) {
      if (i < s.inter) inner[i] = narrow<TYPE>(activate(s.act, a) * b);
    } else {
      if (2 * i < s.inter) inner[2 * i] = narrow<TYPE>(activate(s.act, a));
      if (2 * i + 1 < s.inter) inner[2 * i + 1] = narrow<TYPE>(activate(s.act, b));
    }
    return;
  }
  int pairs = s.head_dim / 2, rotating = s.rotary / 2, head = pair / pairs, j = pair % pairs;
  if (head >= s.heads + 2 * s.kv_heads) return; /* padding */
  int d0 = j < rotating ? j : s.rotary + 2 * (j - rotating), d1 = j < rotating ? j + rotating : d0 + 1;
  if (j < rotating && head < s.heads + s.kv_heads) {
    size_t angle = (size_t)s.position[row] * rotating + j;
    float c = s.cosine[angle], i = s.sine[angle], x = a;
    a = fmaf(x, c, -(b * i));
    b = fmaf(b, c, x * i);
  }
  uint16_t *to;
  if (head < s.heads) {
    to = s.q + ((size_t)row * s.heads + head) * s.dim;
  } else {
    bool value = head >= s.heads + s.kv_heads;
    int g = head - s.heads - (value ? s.kv_heads : 0);
    to = (value ? s.values : s.keys) + ((s.sequence[row] * s.sequence_stride + g) * s.slots + s.slot[row]) * s.dim;
  }
  to[d0] = narrow<TYPE>(a), to[d1] = narrow<TYPE>(b);
}

/* NT: blocks of 8 rows. */
template <number TYPE, int NT, class FINISH> static __global__ __launch_bounds__(WARPS *WARP) void k_matmul(product p, FINISH f) {
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
  dependency_wait();
  dependency_release();
  int n = *p.n;
  if (row0 >= n) return;

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

  /* Through shared memory, [warp][8 NT rows][16 outputs], so that neighbours finish neighbouring pairs. */
  DYNAMIC_SHARED(float, shared);
  float *mine = shared + warp * 8 * NT * 16;
#pragma unroll
  for (int j = 0; j < NT; j++)
    for (int i = 0; i < 4; i++) {
      float v = MANY ? total[j][i] + sum[j][i] : sum[j][i];
      mine[(8 * j + 2 * t + i % 2) * 16 + g + i / 2 * 8] = v;
    }
  __syncthreads();
  for (int item = threadIdx.x; item < TILES * 8 * 8 * NT; item += WARPS * WARP) {
    int q = item % (TILES * 8), row = item / (TILES * 8), at = row * 16 + q % 8;
    if (row0 + row >= n || block_tile + q / 8 >= p.end_tile) continue;
    float v[2];
    for (int i = 0; i < 2; i++) {
      const float *from = shared + q / 8 * 8 * NT * 16 + at + 8 * i;
      v[i] = from[0];
      for (int s = 1; !MANY && s < SLICES; s++) v[i] += from[s * 8 * NT * 16];
    }
    finish<TYPE>(f, block_tile * 8 + q, part, row0 + row, v[0], v[1]);
  }
}

template <number TYPE, int NT, class FINISH>
static cudaError_t start(cudaStream_t stream, const product &p, const FINISH &f, int rows) {
  int tiles = NT > 2 ? WARPS : 1;
  dim3 grid((unsigned)(rows / (8 * NT)), (unsigned)blocks_of(p.end_tile - p.first_tile, tiles), (unsigned)p.m.splits);
  return launch(stream, grid, WARPS * WARP, sizeof(float) * WARPS * 8 * NT * 16, k_matmul<TYPE, NT, FINISH>, p, f);
}

template <number TYPE, class FINISH>
static cudaError_t choose(cudaStream_t stream, const product &p, const FINISH &f, int rows) {
  switch (rows) {
  case 8: return start<TYPE, 1>(stream, p, f, rows);
  case 16: return start<TYPE, 2>(stream, p, f, rows);
  case 32: return start<TYPE, 4>(stream, p, f, rows);
  default: return start<TYPE, 8>(stream, p, f, rows);
  }
}

cudaError_t multiply_store(cudaStream_t stream, number type, const product &p, const store &f, int rows) {
  return type == F16 ? choose<F16>(stream, p, f, rows) : choose<BF16>(stream, p, f, rows);
}

cudaError_t multiply_spread(cudaStream_t stream, number type, const product &p, const spread &f, int rows) {
  return type == F16 ? choose<F16>(stream, p, f, rows) : choose<BF16>(stream, p, f, rows);
}
