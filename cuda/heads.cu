/* The RMS norm of every query and key (and value, if the model has such norms), then its rotation: one warp per head
 * and row, so that nothing depends on other rows and heads. A lane has pairs lane, lane + 32, .. of outputs: it sums
 * their squares in this order, then the warp adds up its lanes' sums. The product had rounded its results to the
 * weights' type. */
#include "epilogue.cuh"
#include "heads.cuh"
#include "launch.cuh"

constexpr int WIDE = 256; /* threads of a norm of all heads */

/* EACH: the largest number of pairs of a lane. Heads after those of queries and keys are those of values. */
template <number TYPE, int EACH>
static __global__ __launch_bounds__(WARP) void k_heads(layer_epilogue s, head_norms a) {
  dependency_release();
  int row = (int)blockIdx.x, head = (int)blockIdx.y, pairs = s.head_dim / 2;
  if (row >= *a.n) return dependency_wait();
  const float2 *norm = head < s.heads ? a.q_norm : head < s.heads + s.kv_heads ? a.k_norm : nullptr;
  layer_target spot[EACH];
  float2 weight[EACH], x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int j = (int)threadIdx.x + e * WARP;
    if (j < pairs) spot[e] = target_of<TYPE>(s, head * pairs + j, 0, row);
    weight[e] = norm && j < pairs ? norm[j] : make_float2(1.0f, 1.0f);
  }
  dependency_wait();
  float squares = 0.0f;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    if ((int)threadIdx.x + e * WARP >= pairs) break;
    x[e] = make_float2(widen<TYPE>(*spot[e].first), widen<TYPE>(*spot[e].second));
    squares = fmaf(x[e].y, x[e].y, fmaf(x[e].x, x[e].x, squares));
  }
  float scale = 1.0f / sqrtf(warp_sum(squares) / (float)s.head_dim + a.eps);
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    if ((int)threadIdx.x + e * WARP >= pairs) break;
    spot[e].bias = {};
    finish<TYPE>(s, 0, spot[e], x[e].x * scale * weight[e].x, x[e].y * scale * weight[e].y);
  }
}

/* The same for norms of all heads together: one block per row for its queries, and one for its keys. A thread has pairs
 * threadIdx.x, threadIdx.x + WIDE, ..; it reads them twice, since their number has no bound that registers could hold.
 */
template <number TYPE> static __global__ __launch_bounds__(WIDE) void k_wide_heads(layer_epilogue s, head_norms a) {
  DYNAMIC_SHARED_OF(float, sums, (int)sizeof(float) * (WIDE / WARP));
  dependency_release();
  int row = (int)blockIdx.x, half = s.head_dim / 2, first = blockIdx.y ? s.heads * half : 0;
  int pairs = (blockIdx.y ? s.kv_heads : s.heads) * half;
  const float2 *weight = blockIdx.y ? a.k_norm : a.q_norm;
  bool there = row < *a.n;
  dependency_wait();
  if (!there) return;
  float squares = 0.0f;
  for (int j = (int)threadIdx.x; j < pairs; j += WIDE) {
    layer_target spot = target_of<TYPE>(s, first + j, 0, row);
    float x = widen<TYPE>(*spot.first), y = widen<TYPE>(*spot.second);
    squares = fmaf(y, y, fmaf(x, x, squares));
  }
  float scale = 1.0f / sqrtf(block_sum<WIDE / WARP>(squares, sums) / (float)(2 * pairs) + a.eps);
  for (int j = (int)threadIdx.x; j < pairs; j += WIDE) {
    layer_target spot = target_of<TYPE>(s, first + j, 0, row);
    spot.bias = {};
    float x = widen<TYPE>(*spot.first), y = widen<TYPE>(*spot.second);
    finish<TYPE>(s, 0, spot, x * scale * weight[j].x, y * scale * weight[j].y);
  }
}

cudaError_t normalize_heads(const queue &stream, number type, layer_epilogue s, const head_norms &a, int rows) {
  s.rotates = a.rotates;
  if (a.wide)
    return launch(stream, dim3((unsigned)rows, 2), WIDE, sizeof(float) * (WIDE / WARP),
                  type == F16 ? k_wide_heads<F16> : k_wide_heads<BF16>, s, a);
  dim3 grid((unsigned)rows, (unsigned)(s.heads + s.kv_heads * (a.values ? 2 : 1)));
  constexpr int FEW = 4, MOST = MAX_HEAD / 2 / WARP;
  if (s.head_dim <= 2 * FEW * WARP)
    return launch(stream, grid, WARP, 0, type == F16 ? k_heads<F16, FEW> : k_heads<BF16, FEW>, s, a);
  return launch(stream, grid, WARP, 0, type == F16 ? k_heads<F16, MOST> : k_heads<BF16, MOST>, s, a);
}

constexpr int GATE_THREADS = 256;

template <number TYPE> static __global__ __launch_bounds__(GATE_THREADS) void k_gate_heads(head_gates a) {
  dependency_release();
  int row = (int)blockIdx.x, i = (int)blockIdx.y * GATE_THREADS + (int)threadIdx.x;
  bool there = row < *a.n && i < a.numbers;
  dependency_wait();
  if (!there) return;
  uint16_t *x = a.out.at + a.out.place(row, i);
  *x = narrow<TYPE>(widen<TYPE>(*x) / (1.0f + expf(-a.gates[(size_t)row * a.numbers + i])));
}

cudaError_t gate_heads(const queue &stream, number type, const head_gates &a, int rows) {
  return launch(stream, dim3((unsigned)rows, (unsigned)blocks_of(a.numbers, GATE_THREADS)), GATE_THREADS, 0,
                type == F16 ? k_gate_heads<F16> : k_gate_heads<BF16>, a);
}
