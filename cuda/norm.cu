/* Embedding, feature or residual sum, and the norms that read it: one block per row, so that nothing depends on other
 * rows. This is the place where the residual stream enters a layer, so a cache's features are taken here. Sums along
 * the row: each thread sums its columns in order, then the fixed tree of a warp, then the warps in order. */
#include "epilogue.cuh"
#include "launch.cuh"
#include "norm.cuh"

constexpr int THREADS = 512, WARPS = THREADS / WARP, MOST_EACH = MAX_HIDDEN / THREADS;

/* A thread's columns, c = threadIdx.x + e * THREADS for e below EACH: in registers, so that all loads are in flight at
 * once; the weights of norms are loaded before the wait. */
template <int EACH> struct columns { float v[EACH]; };
template <int EACH> static __device__ __forceinline__ columns<EACH> load(const float *from, int hidden) {
  columns<EACH> to;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int c = threadIdx.x + e * THREADS;
    to.v[e] = from && c < hidden ? from[c] : 0.0f;
  }
  return to;
}

/* Keeps column c of a row's feature for the tapped streams. */
static __device__ __forceinline__ void keep(float *feature, unsigned taps, int hidden, int c, float v) {
  for (int t = 0; t < DT_TAPS; t++)
    if (taps >> t & 1) feature[t * hidden + c] = v;
}

static __device__ __forceinline__ float *feature_of(const features &f, const pass_rows &rows, int r, int slot) {
  return f.at + ((size_t)rows.sequence[r] * f.slots + slot) * f.width;
}

/* The slot of the row before this one: on its path, or the last slot of its prefix. */
static __device__ __forceinline__ int slot_before(const pass_rows &rows, int r) {
  int above = rows.position[r] - rows.prefix[r];
  return above ? rows.path[rows.path_at[r] + above - 1] : rows.prefix[r] - 1;
}

/* The numbers that a product's parts make of x or, with ALONE, what they add to it. All loads of AT_ONCE columns are in
 * flight together (as many as registers allow). Zeros replace missing parts; they change no sum, since a sum that
 * begins with 0 is never -0. */
template <int EACH, bool ALONE>
static __device__ __forceinline__ columns<EACH> sum_parts(const norm_job &a, const float *row, size_t at,
                                                          const columns<EACH> &bias) {
  constexpr int AT_ONCE = EACH > 8 ? 2 : 4;
  columns<EACH> x = {};
#pragma unroll
  for (int first = 0; first < EACH; first += AT_ONCE) {
    float part[AT_ONCE][PARTIALS], old[AT_ONCE];
#pragma unroll
    for (int e = 0; e < AT_ONCE && first + e < EACH; e++) {
      int c = threadIdx.x + (first + e) * THREADS;
      bool there = c < a.hidden;
      old[e] = there && !ALONE && !a.fresh ? row[c] : 0.0f;
#pragma unroll
      for (int s = 0; s < PARTIALS; s++) part[e][s] = there && s < a.count ? a.parts[s * a.part_stride + at + c] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE && first + e < EACH; e++) {
      float added = 0.0f;
#pragma unroll
      for (int s = 0; s < PARTIALS; s++) added += part[e][s];
      added += bias.v[first + e];
      if (a.activates) added = activate(a.act, added);
      x.v[first + e] = ALONE || a.fresh ? added : fmaf(added, a.residual_scale, old[e]);
    }
  }
  return x;
}

/* The same if what a product adds is normalized first. */
template <int EACH>
static __device__ __forceinline__ columns<EACH> sum_normed(const norm_job &a, const float *row, size_t at,
                                                           const columns<EACH> &bias, const columns<EACH> &weight,
                                                           float *sums) {
  columns<EACH> old = load<EACH>(row, a.hidden), x = sum_parts<EACH, true>(a, row, at, bias);
  float mean = 0.0f, squares = 0.0f;
  if (a.norm == DT_NORM_LAYER) {
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++) sum += x.v[e]; /* columns past the end are 0 */
    mean = block_sum<WARPS>(sum, sums) / (float)a.hidden;
  }
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if ((int)threadIdx.x + e * THREADS < a.hidden) squares = fmaf(x.v[e] - mean, x.v[e] - mean, squares);
  float scale = 1.0f / sqrtf(block_sum<WARPS>(squares, sums) / (float)a.hidden + a.eps);
#pragma unroll
  for (int e = 0; e < EACH; e++)
    x.v[e] = fmaf((x.v[e] - mean) * scale * weight.v[e], a.residual_scale, old.v[e]) * a.scale;
  return x;
}

/* NORM_AFTER: a norm follows the product that enters x, and only one reads x. Most models have no such norm, and their
 * kernels have no registers for it. */
template <number TYPE, bool NORM_AFTER, int EACH>
static __global__ __launch_bounds__(THREADS, 1) void k_norm(norm_job a) {
  DYNAMIC_SHARED_OF(float, sums, (int)sizeof(float) * WARPS);
  dependency_release();
  int i = blockIdx.x;
  if (i >= *a.n) return dependency_wait();
  int r = a.wanted ? a.wanted[i] : i, stream = (int)blockIdx.y * a.hidden;
  const uint16_t *embed = a.kind == TOKEN ? embedding_of(a.rows, r, a.embedding) : nullptr;
  const float *feature = nullptr;
  if (a.kind == STREAM) feature = reinterpret_cast<const float *>(embedding_of(a.rows, r, a.embedding));
  if (a.kind == GIVEN) feature = feature_of(a.from, a.rows, r, a.rows.slot[r]);
  if (a.kind == LISTED) feature = feature_of(a.from, a.rows, r, a.rows.path[a.rows.path_at[r]]);
  if (a.kind == BEFORE) feature = feature_of(a.from, a.rows, r, slot_before(a.rows, r));
  float *kept = a.taps | a.norm_taps ? feature_of(a.kept, a.rows, r, a.rows.slot[r]) : nullptr;
  columns<EACH> weight1 = load<EACH>(a.weight1 ? a.weight1 + stream : nullptr, a.hidden),
                bias1 = load<EACH>(a.bias1, a.hidden);
  columns<EACH> weight2 = load<EACH>(NORM_AFTER ? nullptr : a.weight2, a.hidden),
                bias2 = load<EACH>(NORM_AFTER ? nullptr : a.bias2, a.hidden),
                norm_after = load<EACH>(NORM_AFTER ? a.norm_after : nullptr, a.hidden);
  columns<EACH> bias = load<EACH>(a.bias, a.hidden), x = {};
  dependency_wait();

  float *row = a.x ? a.x + (size_t)r * a.hidden : nullptr, sum = 0.0f;
  if constexpr (NORM_AFTER)
    x = sum_normed<EACH>(a, row, (size_t)r * a.hidden, bias, norm_after, sums);
  else if (a.kind == SUM)
    x = sum_parts<EACH, false>(a, row, (size_t)r * a.hidden, bias);
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int c = threadIdx.x + e * THREADS;
    if (c >= a.hidden) break;
    if (embed) x.v[e] = widen<TYPE>(embed[c]) * a.embed_scale;
    if (feature) x.v[e] = feature[stream + c];
    if (row) row[c] = x.v[e];
    if (a.taps) keep(kept, a.taps, a.hidden, c, x.v[e]);
    sum += x.v[e];
  }
  float mean = a.norm == DT_NORM_LAYER ? block_sum<WARPS>(sum, sums) / (float)a.hidden : 0.0f, squares = 0.0f;
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if ((int)threadIdx.x + e * THREADS < a.hidden) squares = fmaf(x.v[e] - mean, x.v[e] - mean, squares);
  if (a.norm_over) {
    squares = 0.0f;
    for (int c = threadIdx.x; c < a.norm_over; c += THREADS) squares = fmaf(feature[c], feature[c], squares);
  }
  uint16_t *y1 = a.y1.at + a.y1.place(i, a.column + stream + (int)threadIdx.x),
           *y2 = a.y2.at + a.y2.place(i, threadIdx.x);
  int next = (int)a.y1.place(0, THREADS); /* distance to the thread's next column in y1 and y2 */
  float scale = 1.0f / sqrtf(block_sum<WARPS>(squares, sums) / (float)(a.norm_over ? a.norm_over : a.hidden) + a.eps);
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int c = threadIdx.x + e * THREADS;
    if (c >= a.hidden) break;
    float v = (x.v[e] - mean) * scale, first = x.v[e];
    if (a.weight1) first = a.bias1 ? fmaf(v, weight1.v[e], bias1.v[e]) : v * weight1.v[e];
    y1[e * next] = narrow<TYPE>(first);
    if (a.keeps_norm) row[c] = first;
    if (a.norm_taps) keep(kept, a.norm_taps, a.hidden, c, first);
    if (!NORM_AFTER && a.weight2)
      y2[e * next] = narrow<TYPE>(a.bias2 ? fmaf(v, weight2.v[e], bias2.v[e]) : v * weight2.v[e]);
  }
}

template <number TYPE, int EACH = 1>
static cudaError_t start(const queue &stream, const norm_job &a, int rows, int streams) {
  if constexpr (EACH < MOST_EACH)
    if (a.hidden > EACH * THREADS) return start<TYPE, 2 * EACH>(stream, a, rows, streams);
  auto kernel = a.norm_after ? k_norm<TYPE, true, EACH> : k_norm<TYPE, false, EACH>;
  return launch(stream, dim3((unsigned)rows, (unsigned)streams), THREADS, sizeof(float) * WARPS, kernel, a);
}

cudaError_t normalize(const queue &stream, number type, const norm_job &a, int rows, int streams) {
  return type == F16 ? start<F16>(stream, a, rows, streams) : start<BF16>(stream, a, rows, streams);
}
