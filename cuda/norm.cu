/* Embedding or residual sum, and the norms that read it: one block per row, so that nothing depends on the rows beside it.
 * Sums along the row: each thread its columns in order, then the fixed tree of a warp, then the warps in order. */
#include "launch.cuh"
#include "norm.cuh"

constexpr int THREADS = 512, WARPS = THREADS / WARP, MOST_EACH = MAX_HIDDEN / THREADS;

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

/* Of a thread's columns, c = threadIdx.x + e * THREADS for e below EACH: in registers, so that all loads are on their way
 * at once; those of the norms' weights before the wait. */
template <int EACH> struct columns {
  float v[EACH];
};
template <int EACH> static __device__ __forceinline__ columns<EACH> load(const float *from, int hidden) {
  columns<EACH> to;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int c = threadIdx.x + e * THREADS;
    to.v[e] = from && c < hidden ? from[c] : 0.0f;
  }
  return to;
}

template <number TYPE, int EACH> static __global__ __launch_bounds__(THREADS) void k_norm(norm_job a) {
  DYNAMIC_SHARED_OF(float, sums, (int)sizeof(float) * WARPS);
  dependency_release();
  int i = blockIdx.x;
  if (i >= *a.n) return dependency_wait();
  int r = a.wanted ? a.wanted[i] : i;
  const uint16_t *embed = a.token ? a.embed + (size_t)a.token[r] * a.hidden : nullptr;
  columns<EACH> weight1 = load<EACH>(a.weight1, a.hidden), bias1 = load<EACH>(a.bias1, a.hidden);
  columns<EACH> weight2 = load<EACH>(a.weight2, a.hidden), bias2 = load<EACH>(a.bias2, a.hidden);
  columns<EACH> bias = load<EACH>(a.bias, a.hidden), x = {};
  dependency_wait();

  float *row = a.x + (size_t)r * a.hidden, sum = 0.0f;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int c = threadIdx.x + e * THREADS;
    if (c >= a.hidden) break;
    if (embed) {
      x.v[e] = widen<TYPE>(embed[c]);
    } else {
      float added = 0.0f;
#pragma unroll 8
      for (int s = 0; s < a.count; s++) added += a.parts[s * a.part_stride + (size_t)r * a.hidden + c];
      x.v[e] = row[c] + (added + bias.v[e]);
    }
    row[c] = x.v[e];
    sum += x.v[e];
  }
  float mean = a.kind == DT_NORM_LAYER ? block_sum(sum, sums) / (float)a.hidden : 0.0f, squares = 0.0f;
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if ((int)threadIdx.x + e * THREADS < a.hidden) squares = fmaf(x.v[e] - mean, x.v[e] - mean, squares);
  uint16_t *y1 = a.y1.at + a.y1.place(i, threadIdx.x), *y2 = a.y2.at + a.y2.place(i, threadIdx.x);
  int next = (int)a.y1.place(0, THREADS); /* in both */
  float scale = 1.0f / sqrtf(block_sum(squares, sums) / (float)a.hidden + a.eps);
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    if ((int)threadIdx.x + e * THREADS >= a.hidden) break;
    float v = (x.v[e] - mean) * scale;
    y1[e * next] = narrow<TYPE>(a.bias1 ? fmaf(v, weight1.v[e], bias1.v[e]) : v * weight1.v[e]);
    if (a.weight2) y2[e * next] = narrow<TYPE>(a.bias2 ? fmaf(v, weight2.v[e], bias2.v[e]) : v * weight2.v[e]);
  }
}

template <number TYPE, int EACH = 1> static cudaError_t start(cudaStream_t stream, const norm_job &a, int rows) {
  if constexpr (EACH < MOST_EACH)
    if (a.hidden > EACH * THREADS) return start<TYPE, 2 * EACH>(stream, a, rows);
  return launch(stream, dim3((unsigned)rows), THREADS, sizeof(float) * WARPS, k_norm<TYPE, EACH>, a);
}

cudaError_t normalize(cudaStream_t stream, number type, const norm_job &a, int rows) {
  return type == F16 ? start<F16>(stream, a, rows) : start<BF16>(stream, a, rows);
}
