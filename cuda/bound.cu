/* Multiplies logits by the model's factor, and then caps them: cap * tanh(x / cap). A kernel of its own does so, since
 * few models have a factor or a cap, and the end of a product serves all of them. */
#include "bound.cuh"
#include "launch.cuh"

constexpr int THREADS = 256, EACH = 4; /* logits of a thread */

static __global__ __launch_bounds__(THREADS) void k_bound(bound_job a) {
  dependency_release();
  int first = (int)blockIdx.x * THREADS * EACH + (int)threadIdx.x;
  bool wanted = (int)blockIdx.y < a.header->wanted;
  dependency_wait();
  if (!wanted) return;
  float *logits = a.logits + (size_t)blockIdx.y * a.outputs, x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) x[e] = first + e * THREADS < a.outputs ? logits[first + e * THREADS] : 0.0f;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    x[e] *= a.scale;
    if (a.cap > 0.0f) x[e] = a.cap * tanhf(x[e] / a.cap);
    if (first + e * THREADS < a.outputs) logits[first + e * THREADS] = x[e];
  }
}

cudaError_t bound_logits(const queue &stream, const bound_job &a, int rows) {
  if (a.scale == 1.0f && a.cap == 0.0f) return cudaSuccess;
  dim3 grid((unsigned)blocks_of(a.outputs, THREADS * EACH), (unsigned)rows);
  return launch(stream, grid, THREADS, 0, k_bound, a);
}
