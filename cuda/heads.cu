/* The RMS norm of every query and key, then its rotation: one warp per head and row, so that nothing depends on other
 * rows and heads. A lane has pairs lane, lane + 32, .. of outputs: it sums their squares in this order, then the warp
 * adds up its lanes' sums. The product had rounded its results to the weights' type. */
#include "heads.cuh"
#include "launch.cuh"
#include "spread.cuh"

constexpr int EACH = MAX_HEAD / 2 / WARP; /* pairs of a lane */

template <number TYPE> static __global__ __launch_bounds__(WARP) void k_heads(spread s, head_norms a) {
  dependency_release();
  int row = (int)blockIdx.x, head = (int)blockIdx.y, pairs = s.head_dim / 2;
  if (row >= *a.n) return dependency_wait();
  const float2 *norm = head < s.heads ? a.q_norm : a.k_norm;
  spread_spot spot[EACH];
  float2 weight[EACH], x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int j = (int)threadIdx.x + e * WARP;
    if (j < pairs) spot[e] = spot_of<TYPE>(s, head * pairs + j, 0, row), weight[e] = norm[j];
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

cudaError_t normalize_heads(const queue &stream, number type, spread s, const head_norms &a, int rows) {
  s.rotates = true;
  dim3 grid((unsigned)rows, (unsigned)(s.heads + s.kv_heads));
  return launch(stream, grid, WARP, 0, type == F16 ? k_heads<F16> : k_heads<BF16>, s, a);
}
