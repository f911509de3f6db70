/* Draws tokens among the allowed ids: draw.h defines these. One block per row. The ids are ordered by their keys
 * (scores.cuh), and the allowed ids end at some key. Its digits are found from the highest down, three of the score and
 * three of the id; each takes one pass over the logits that share the digits before it, as on the CPU. Where all ids of
 * that score are allowed, as when it is the score of one only, the id's digits take no pass. Probabilities are summed as
 * whole numbers, so that the order of summation does not matter. */
#include "launch.cuh"
#include "logits.cuh"
#include "scores.cuh"

constexpr int THREADS = 1024, WARPS = THREADS / WARP, DIGIT = 11, VALUES = 1 << DIGIT;
static_assert(VALUES == 2 * THREADS, "a thread sums two values");

/* Calls f(logit, id) for the thread's ids; several loads are in flight at once. */
template <class F> static __device__ __forceinline__ void for_ids(const float *logits, int n, F f) {
  constexpr int TOGETHER = 8;
  for (int first = threadIdx.x; first < n; first += TOGETHER * THREADS) {
    float logit[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) logit[i] = first + i * THREADS < n ? logits[first + i * THREADS] : 0.0f;
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      if (first + i * THREADS < n) f(logit[i], first + i * THREADS);
  }
}

struct bins {
  unsigned low[VALUES], high[VALUES];              /* summed weights of the ids with each value of the digit */
  unsigned long long of_warp[WARPS], ahead, found; /* found: the weights of the value below */
  uint64_t best[WARPS];
  float largest[WARPS], nans[WARPS];
  int value;
};

/* Adds in two halves: shared memory adds 32 bits in one instruction, but 64 bits in a loop that retries until no other
 * thread interferes. */
static __device__ __forceinline__ void add(bins *b, unsigned value, unsigned counts) {
  unsigned before = atomicAdd(&b->low[value], counts);
  if (before + counts < before) atomicAdd(&b->high[value], 1u);
}
static __device__ __forceinline__ unsigned long long sum_of(const bins *b, int value) {
  return (unsigned long long)b->high[value] << 32 | b->low[value];
}

/* The sum of x over the block's threads; *before: over the threads before this one. */
static __device__ unsigned long long scan(bins *b, unsigned long long x, unsigned long long *before) {
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  unsigned long long upto = x, total = 0;
  for (int d = 1; d < WARP; d *= 2) {
    unsigned long long other = __shfl_sync(0xffffffffu, upto, lane < d ? lane : lane - d);
    if (lane >= d) upto += other;
  }
  if (lane == WARP - 1) b->of_warp[warp] = upto;
  __syncthreads();
  *before = upto - x;
  for (int w = 0; w < WARPS; w++) {
    if (w < warp) *before += b->of_warp[w];
    total += b->of_warp[w];
  }
  return total;
}

/* Walks the ids from the largest key down until the sum of count(logit, id) reaches need(the sum over all ids); returns
 * the key reached or, if that is of the last id with its score that counts, the least key with this score. All ids with one score
 * that count at all, the lowest id among them, count the same. */
template <class COUNT, class NEED>
static __device__ uint64_t reach(const float *logits, int n, bins *b, COUNT count, NEED need) {
  constexpr int HIGHEST = 64 - DIGIT, IDS = 32;  /* the last digit of the score, and of the id, has one bit less */
  int upper = VALUES - 1 - 2 * (int)threadIdx.x; /* the thread's two values: this one and the one below */
  uint64_t low = 0;                              /* the least key that has the digits found so far */
  unsigned long long ahead = 0, needed = 0;      /* ahead: the weights of larger keys */
  for (int shift = HIGHEST; shift >= 0; shift -= shift % IDS == DIGIT - 1 ? DIGIT - 1 : DIGIT) {
    unsigned values = shift % IDS ? VALUES : VALUES / 2;
    for (int v = threadIdx.x; v < VALUES; v += THREADS) b->low[v] = b->high[v] = 0;
    __syncthreads();
    for_ids(logits, n, [=](float logit, int id) {
      uint64_t key = key_of(logit, id), value = (key - low) >> shift;
      unsigned counts = key >= low && value < values ? count(logit, id) : 0;
      if (counts) add(b, (unsigned)value, counts);
    });
    __syncthreads();
    unsigned long long of_upper = sum_of(b, upper), of_both = of_upper + sum_of(b, upper - 1), before;
    unsigned long long total = scan(b, of_both, &before);
    if (shift == HIGHEST) needed = need(total);
    before += ahead;
    if (before < needed && needed <= before + of_both) {
      bool first = needed <= before + of_upper;
      b->value = first ? upper : upper - 1;
      b->ahead = first ? before : before + of_upper;
      b->found = first ? of_upper : of_both - of_upper;
    }
    __syncthreads();
    low += (uint64_t)b->value << shift, ahead = b->ahead;
    if (shift == IDS && needed + count(score_of(low), 0) > ahead + b->found) break;
  }
  return low;
}

/* p(id) / (the largest p) in units of 2^-30. */
static __device__ __forceinline__ unsigned weight_of(float logit, float largest, float scale) {
  float d = fminf((logit - largest) * scale, 0.0f);
  return (unsigned)(expf(fmaxf(d, -87.0f)) * 0x1p30f);
}

/* The least key that is in the top k and, among these, in the top p. */
static __device__ uint64_t last_allowed(const dt_sampling &s, const float *logits, int n, float largest, bins *b) {
  uint64_t cut = 0;
  float scale = 1.0f / s.temp;
  double share = s.top_p;
  unsigned long long top_k = (unsigned long long)s.top_k;
  if (s.top_k > 0 && s.top_k < n)
    cut = reach(
        logits, n, b, [](float, int) { return 1u; }, [=](unsigned long long) { return top_k; });
  if (share > 0.0 && share < 1.0) {
    uint64_t of_share = reach(
        logits, n, b,
        [=](float logit, int id) { return key_of(logit, id) < cut ? 0u : weight_of(logit, largest, scale); },
        [=](unsigned long long total) {
          double need = ceil(share * (double)total);
          return need > 1.0 ? (unsigned long long)need : 1ull;
        });
    if (of_share > cut) cut = of_share; /* else ids of one score end at both */
  }
  return cut;
}

/* The largest logit of a row, and whether a logit is NaN, from the parts of reduce_logits; the same in every thread. */
static __device__ float largest_of(const reduction &a, int j, bins *b, bool *nan) {
  int blocks = (a.outputs + LOGIT_BLOCK - 1) / LOGIT_BLOCK;
  float largest = -INFINITY, nans = 0.0f;
  for (int i = threadIdx.x; i < blocks; i += THREADS) {
    logit_part p = a.parts[(size_t)j * blocks + i];
    largest = fmaxf(largest, p.max), nans += (float)p.nan;
  }
  largest = warp_max(largest), nans = warp_sum(nans);
  if (threadIdx.x % WARP == 0) b->largest[threadIdx.x / WARP] = largest, b->nans[threadIdx.x / WARP] = nans;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) largest = fmaxf(largest, b->largest[w]), nans += b->nans[w];
  *nan = nans > 0.0f;
  return fminf(largest, 3.40282347e38f);
}

/* The allowed id with the largest score. */
static __device__ int best_allowed(const dt_sampling &s, int position, const float *logits, int n, float largest,
                                   uint64_t cut, bins *b) {
  float scale = 1.0f / s.temp, least = s.min_p > 0.0f ? logf(s.min_p) : -INFINITY;
  uint64_t best = 0;
  for (unsigned counter = threadIdx.x; first_of(counter) < n; counter += THREADS) {
    int first = first_of(counter);
    float score[SHARING];
    bool in[SHARING], any = false;
    for (int i = 0; i < SHARING; i++) {
      int id = first + 16 * i;
      score[i] = id < n ? logits[id] : 0.0f;
      in[i] = id < n && key_of(score[i], id) >= cut && (score[i] - largest) * scale >= least;
      any |= in[i];
    }
    if (!any) continue;
    add_noise(s, position, counter, score);
    for (int i = 0; i < SHARING; i++) {
      uint64_t key = in[i] ? key_of(score[i], first + 16 * i) : 0;
      if (key > best) best = key;
    }
  }
  best = warp_best(best);
  if (threadIdx.x % WARP == 0) b->best[threadIdx.x / WARP] = best;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) best = b->best[w] > best ? b->best[w] : best;
  return id_of(best);
}

static __global__ __launch_bounds__(THREADS) void k_draw(reduction a) {
  DYNAMIC_SHARED(bins, b);
  dependency_release();
  int j = blockIdx.x;
  if (j >= a.rows.header->wanted) return dependency_wait();
  dt_sampling s = a.rows.sampling[j];
  int position = position_of(a, j);
  dependency_wait();
  if (!draw_is_filtered(&s)) return;
  const float *logits = a.logits + (size_t)j * a.outputs;
  bool nan;
  float largest = largest_of(a, j, b, &nan);
  int id = -1;
  if (!nan) {
    uint64_t cut = last_allowed(s, logits, a.outputs, largest, b);
    id = best_allowed(s, position, logits, a.outputs, largest, cut, b);
  }
  if (threadIdx.x == 0) a.results.argmax[j] = id;
}

cudaError_t draw_filtered(const queue &stream, const reduction &a, int rows) {
  return launch(stream, dim3((unsigned)rows), THREADS, sizeof(bins), k_draw, a);
}
