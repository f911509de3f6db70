/* Embedding or residual sum, and the norms that read it: one block per row, so that nothing depends on the rows beside it.
 * Sums along the row: each thread its columns in order, then the fixed tree of a warp, then the warps in order. */
#include "launch.cuh"
#include "norm.cuh"

constexpr int THREADS = 512, WARPS = THREADS / WARP;

/* The sum over all threads, the same in each; `shared` has room for WARPS. */
static __device__ __forceinline__ float block_sum(float v, float *shared) {
  v = warp_sum(v);
  __syncthreads(); /* whoever still reads the sums before */
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = v;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < WARPS; i++) sum += shared[i];
  return sum;
}

template <number TYPE> static __global__ __launch_bounds__(THREADS) void k_norm(norm_job a) {
  DYNAMIC_SHARED(float, row); /* [hidden], then [WARPS] */
  float *sums = row + a.hidden;
  dependency_release();
  dependency_wait();
  int i = blockIdx.x;
  if (i >= *a.n) return;
  int r = a.wanted ? a.wanted[i] : i;
  float *x = a.x + (size_t)r * a.hidden, sum = 0.0f;
  for (int c = threadIdx.x; c < a.hidden; c += THREADS) {
    float v;
    if (a.token) {
      v = widen<TYPE>(a.embed[(size_t)a.token[r] * a.hidden + c]);
    } else {
      float added = 0.0f;
#pragma unroll 8
      for (int s = 0; s < a.count; s++) added += a.parts[s * a.part_stride + (size_t)r * a.hidden + c];
      v = x[c] + (added + a.bias[c]);
    }
    row[c] = x[c] = v;
    sum += v;
  }
  float mean = a.kind == DT_NORM_LAYER ? block_sum(sum, sums) / (float)a.hidden : 0.0f, squares = 0.0f;
  for (int c = threadIdx.x; c < a.hidden; c += THREADS) squares = fmaf(row[c] - mean, row[c] - mean, squares);
  float scale = 1.0f / sqrtf(block_sum(squares, sums) / (float)a.hidden + a.eps);
  for (int c = threadIdx.x; c < a.hidden; c += THREADS) {
    float v = (row[c] - mean) * scale;
    a.y1[(size_t)i * a.ld + c] = narrow<TYPE>(a.bias1 ? fmaf(v, a.weight1[c], a.bias1[c]) : v * a.weight1[c]);
    if (a.weight2) a.y2[(size_t)i * a.ld + c] = narrow<TYPE>(a.bias2 ? fmaf(v, a.weight2[c], a.bias2[c]) : v * a.weight2[c]);
  }
}

cudaError_t normalize(cudaStream_t stream, number type, const norm_job &a, int rows) {
  size_t shared = sizeof(float) * (size_t)(a.hidden + WARPS);
  if (type == F16) return launch(stream, dim3((unsigned)rows), THREADS, shared, k_norm<F16>, a);
  return launch(stream, dim3((unsigned)rows), THREADS, shared, k_norm<BF16>, a);
}
