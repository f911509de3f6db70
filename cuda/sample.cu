/* Samples tokens among the allowed ids: sample.h defines these. The ids are ordered by their keys (scores.cuh), and the
 * allowed ids end at some key. Several blocks share a row, in two kernels:
 *
 *   k_sample_count  counts and weighs the ids of each step; a step has the ids whose logits are about as far below the
 *                   largest. The last block to end sees in which steps the allowed ids may end: ids there are in
 *                   question, those in higher steps are allowed, those in lower ones are not.
 *   k_sample        samples among the allowed, and lists those in question. The last block to end finds the key where
 *                   the allowed ids end, and samples among the listed too. If the list has no room for all, it reads
 *                   all logits instead.
 *
 * The key's digits are found from the highest down, three of the score and three of the id; each takes one pass over
 * the ids in question, as on the CPU over all. Where all ids of that score are allowed, as when it is the score of one
 * only, the id's digits take no pass. Counts and weights are whole numbers, so that neither the order of summation nor
 * the number of blocks matters. */
#include "launch.cuh"
#include "logits.cuh"
#include "scores.cuh"

constexpr int THREADS = 1024, WARPS = THREADS / WARP, DIGIT = 11, VALUES = 1 << DIGIT;
static_assert(VALUES == 2 * THREADS, "a thread sums two values");
static_assert(VALUES == SAMPLE_STEPS, "steps are counted as a digit's values are");

/* Calls f(logit, id) for the thread's ids, where `blocks` blocks share n ids; several loads are in flight at once. */
template <class F>
static __device__ __forceinline__ void for_ids(const float *logits, int n, int block, int blocks, F f) {
  constexpr int TOGETHER = 8;
  int stride = blocks * THREADS;
  for (int first = block * THREADS + threadIdx.x; first < n; first += TOGETHER * stride) {
    float logit[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) logit[i] = first + i * stride < n ? logits[first + i * stride] : 0.0f;
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      if (first + i * stride < n) f(logit[i], first + i * stride);
  }
}

struct bins {
  unsigned low[VALUES], high[VALUES];              /* summed weights of the ids with each value of the digit, or step */
  unsigned ids[VALUES];                            /* their number, in k_sample_count */
  unsigned long long of_warp[WARPS], ahead, found; /* found: the weights of the value below */
  uint64_t best[WARPS];
  float largest[WARPS], nans[WARPS];
  int value;
  bool last;
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

/* The largest x over the block's threads, in each. */
static __device__ uint64_t best_of_block(bins *b, uint64_t x) {
  x = warp_best(x);
  if (threadIdx.x % WARP == 0) b->best[threadIdx.x / WARP] = x;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) x = b->best[w] > x ? b->best[w] : x;
  return x;
}

/* The larger of the thread's two values; the other is the one below. */
static __device__ __forceinline__ int upper_value() { return VALUES - 1 - 2 * (int)threadIdx.x; }

/* The value at which the sum from the largest value down reaches `needed`, which is at most the sum over all. The
 * thread knows the sum before its two values, and theirs. b->ahead: the sum before that value, b->found: its own. */
static __device__ int find(bins *b, unsigned long long needed, unsigned long long before, unsigned long long of_upper,
                           unsigned long long of_lower) {
  if (before < needed && needed <= before + of_upper + of_lower) {
    bool first = needed <= before + of_upper;
    b->value = upper_value() - (first ? 0 : 1);
    b->ahead = first ? before : before + of_upper;
    b->found = first ? of_upper : of_lower;
  }
  __syncthreads();
  return b->value;
}

/* Whether all other blocks of the row have asked before; then the block sees what they wrote until then. */
static __device__ bool is_last(bins *b, unsigned *done) {
  __syncthreads();
  if (threadIdx.x == 0) {
    b->last = add_one_for_block(done) == gridDim.x - 1;
    if (b->last) *done = 0;
  }
  __syncthreads();
  return b->last;
}

/* ---- the allowed ids --------------------------------------------------------------------------------------------- */

/* p(id) / (the largest p) in units of 2^-30. */
static __device__ __forceinline__ unsigned weight_of(float logit, float largest, float scale) {
  float d = fminf((logit - largest) * scale, 0.0f);
  return (unsigned)(expf(fmaxf(d, -87.0f)) * 0x1p30f);
}

static __device__ __forceinline__ bool has_top_k(const dt_sampling &s, int n) { return s.top_k > 0 && s.top_k < n; }
static __device__ __forceinline__ bool has_top_p(const dt_sampling &s) { return s.top_p > 0.0f && s.top_p < 1.0f; }

/* The weight that allowed ids reach, of the whole that the top k have. */
static __device__ __forceinline__ unsigned long long needed_of(const dt_sampling &s, unsigned long long whole) {
  double need = ceil((double)s.top_p * (double)whole);
  return need > 1.0 ? (unsigned long long)need : 1ull;
}

/* The step of a logit, which never falls as the logit rises. There are 128 steps between the distances d and 2 d + 1
 * from the largest logit; step 0 has all distances from 65279 on. */
static __device__ __forceinline__ int step_of(float logit, float largest) {
  unsigned bits = __float_as_uint(fmaxf(largest - logit, 0.0f) + 1.0f) - __float_as_uint(1.0f), step = bits >> 16;
  return step < VALUES ? VALUES - 1 - (int)step : 0;
}

/* Finds the steps of a row that are in question, from its sums, and clears these. */
static __device__ void find_steps(const dt_sampling &s, int n, float largest, sample_row *row, bins *b) {
  int upper = upper_value(), above = -1, least = 0;
  unsigned ids[2];
  unsigned long long weight[2], ids_before, before;
  for (int i = 0; i < 2; i++) {
    ids[i] = row->ids[upper - i], weight[i] = row->weight[upper - i];
    row->ids[upper - i] = 0, row->weight[upper - i] = 0;
  }
  bool counted = scan(b, (unsigned long long)ids[0] + ids[1], &ids_before) > 0; /* no id of a row with a NaN is */
  __syncthreads();
  unsigned long long whole = scan(b, weight[0] + weight[1], &before);
  auto is_mine = [=](int value) { return value == upper || value == upper - 1; };
  bool top_k = counted && has_top_k(s, n);
  if (top_k) {
    above = least = find(b, (unsigned long long)s.top_k, ids_before, ids[0], ids[1]);
    if (is_mine(least)) b->found = before + (least < upper ? weight[0] : 0);
    __syncthreads();
    whole = b->found; /* the top k have at least the weight of the steps above their last: their share ends no sooner */
    __syncthreads();
  }
  if (has_top_p(s) && whole > 0) {
    above = find(b, needed_of(s, whole), before, weight[0], weight[1]);
    if (!top_k) least = above;
  }
  if (is_mine(above)) {
    row->ids_above = (unsigned)ids_before + (above < upper ? ids[0] : 0);
    row->weight_above = before + (above < upper ? weight[0] : 0);
  }
  if (is_mine(least)) {
    row->ids_to_least = (unsigned)ids_before + ids[0] + (least < upper ? ids[1] : 0);
    row->weight_below = top_k ? 0 : whole - (before + weight[0] + (least < upper ? weight[1] : 0));
  }
  if (threadIdx.x == 0) row->largest = largest, row->above = above, row->least = least;
}

/* The largest logit of a row, NaN if any is, from the parts of reduce_logits; the same in every thread. */
static __device__ float largest_of(const reduction &a, int j, bins *b) {
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
  return nans > 0.0f ? NAN : fminf(largest, 3.40282347e38f);
}

static __global__ __launch_bounds__(THREADS) void k_sample_count(reduction a) {
  DYNAMIC_SHARED(bins, b);
  dependency_release();
  int j = blockIdx.y;
  if (j >= a.rows.header->wanted) return dependency_wait();
  dt_sampling s = a.rows.sampling[j];
  for (int v = threadIdx.x; v < VALUES; v += THREADS) b->low[v] = b->high[v] = b->ids[v] = 0;
  dependency_wait();
  if (!sample_is_filtered(&s)) return;
  sample_row *row = a.samples + j;
  float largest = largest_of(a, j, b), scale = 1.0f / s.temp;
  bool weighs = has_top_p(s);
  if (largest == largest && (weighs || has_top_k(s, a.outputs))) {
    for_ids(a.logits + (size_t)j * a.outputs, a.outputs, blockIdx.x, gridDim.x, [=](float logit, int) {
      int step = step_of(logit, largest);
      atomicAdd(&b->ids[step], 1u);
      unsigned weight = weighs ? weight_of(logit, largest, scale) : 0;
      if (weight) add(b, (unsigned)step, weight);
    });
    __syncthreads();
    for (int v = threadIdx.x; v < VALUES; v += THREADS) {
      if (b->ids[v]) atomicAdd(&row->ids[v], b->ids[v]);
      if (sum_of(b, v)) atomicAdd(&row->weight[v], sum_of(b, v));
    }
  }
  if (is_last(b, &row->done)) find_steps(s, a.outputs, largest, row, b);
}

/* ---- the ids in question ----------------------------------------------------------------------------------------- */

struct question {
  int above, least; /* steps that are in question */
  int n;            /* ids in them */
  uint64_t *keys;   /* their keys, in any order, if there is room for n */
  int room;
  const float *logits;
  int outputs;
  float largest;
};

/* The ids in question of a row whose ids are counted. Their keys lie where reduce_logits had its lists. */
static __device__ question question_of(const reduction &a, int j) {
  const sample_row *row = a.samples + j;
  int room = (a.outputs + LOGIT_BLOCK - 1) / LOGIT_BLOCK * TOP;
  return {row->above,
          row->least,
          row->above < 0 ? 0 : (int)(row->ids_to_least - row->ids_above),
          a.best + (size_t)j * room,
          room,
          a.logits + (size_t)j * a.outputs,
          a.outputs,
          row->largest};
}

/* Calls f(key) for the thread's ids in question, of one block. */
template <class F> static __device__ __forceinline__ void for_keys(const question &q, F f) {
  if (q.n <= q.room) {
    for (int i = threadIdx.x; i < q.n; i += THREADS) f(q.keys[i]);
    return;
  }
  for_ids(q.logits, q.outputs, 0, 1, [=](float logit, int id) {
    int step = step_of(logit, q.largest);
    if (step <= q.above && step >= q.least) f(key_of(logit, id));
  });
}

/* Walks the ids in question from the largest key down, after others that have the sum `ahead`, until the sum of
 * count(key) reaches need(the sum over these all); returns the key reached or, if it belongs to the last counted id
 * with its score, the least key with this score. If all do not reach it, returns 0. All ids with one score that count
 * at all, the lowest id among them, count the same. */
template <class COUNT, class NEED>
static __device__ uint64_t reach(const question &q, bins *b, unsigned long long ahead, COUNT count, NEED need) {
  constexpr int HIGHEST = 64 - DIGIT, IDS = 32; /* the last digit of the score, and of the id, has one bit less */
  int upper = upper_value();
  uint64_t low = 0; /* the least key that has the digits found so far */
  unsigned long long needed = 0;
  for (int shift = HIGHEST; shift >= 0; shift -= shift % IDS == DIGIT - 1 ? DIGIT - 1 : DIGIT) {
    unsigned values = shift % IDS ? VALUES : VALUES / 2;
    for (int v = threadIdx.x; v < VALUES; v += THREADS) b->low[v] = b->high[v] = 0;
    __syncthreads();
    for_keys(q, [=](uint64_t key) {
      uint64_t value = (key - low) >> shift;
      unsigned counts = key >= low && value < values ? count(key) : 0;
      if (counts) add(b, (unsigned)value, counts);
    });
    __syncthreads();
    unsigned long long of_upper = sum_of(b, upper), of_lower = sum_of(b, upper - 1), before;
    unsigned long long total = scan(b, of_upper + of_lower, &before);
    if (shift == HIGHEST) needed = need(ahead + total);
    if (needed > ahead + total) return 0;
    low += (uint64_t)find(b, needed, ahead + before, of_upper, of_lower) << shift, ahead = b->ahead;
    if (shift == IDS && needed + count(low | 0xffffffffu) > ahead + b->found) break;
  }
  return low;
}

/* The least key that is in the top k and, among these, in the top p. */
static __device__ uint64_t last_allowed(const dt_sampling &s, const question &q, const sample_row *row, bins *b) {
  uint64_t cut = 0;
  float scale = 1.0f / s.temp, largest = q.largest;
  if (has_top_k(s, q.outputs))
    cut = reach(
        q, b, row->ids_above, [](uint64_t) { return 1u; },
        [=](unsigned long long) { return (unsigned long long)s.top_k; });
  if (has_top_p(s)) {
    uint64_t of_share = reach(
        q, b, row->weight_above,
        [=](uint64_t key) { return key < cut ? 0u : weight_of(score_of(key), largest, scale); },
        [=](unsigned long long weight) { return needed_of(s, weight + row->weight_below); });
    if (of_share > cut) cut = of_share; /* otherwise ids with one score end at both */
  }
  return cut;
}

/* ---- the sample -------------------------------------------------------------------------------------------------- */

static __global__ __launch_bounds__(THREADS) void k_sample(reduction a) {
  DYNAMIC_SHARED(bins, b);
  dependency_release();
  int j = blockIdx.y;
  if (j >= a.rows.header->wanted) return dependency_wait();
  dt_sampling s = a.rows.sampling[j];
  int position = position_of(a, j);
  dependency_wait();
  if (!sample_is_filtered(&s)) return;
  sample_row *row = a.samples + j;
  question q = question_of(a, j);
  if (q.largest != q.largest) return; /* reduce_logits wrote that there is none */
  float scale = 1.0f / s.temp, least_p = s.min_p > 0.0f ? logf(s.min_p) : -INFINITY;
  uint64_t best = 0;
  auto sample = [&](float logit, int id) {
    if (!(logit > -INFINITY && (logit - q.largest) * scale >= least_p)) return;
    uint64_t key = key_of(with_word(s, sample_bits(s.seed, position, id), logit), id);
    if (key > best) best = key;
  };
  for_ids(q.logits, q.outputs, blockIdx.x, gridDim.x, [&](float logit, int id) {
    int step = step_of(logit, q.largest);
    if (step > q.above)
      sample(logit, id);
    else if (step >= q.least && q.n <= q.room)
      q.keys[atomicAdd(&row->listed, 1u)] = key_of(logit, id);
  });
  best = best_of_block(b, best);
  if (threadIdx.x == 0) atomicMax(&row->best, (unsigned long long)best);
  if (!is_last(b, &row->done)) return;
  if (q.n > 0) {
    uint64_t cut = last_allowed(s, q, row, b);
    for_keys(q, [&](uint64_t key) {
      if (key >= cut) sample(score_of(key), id_of(key));
    });
    best = best_of_block(b, best);
  }
  if (threadIdx.x > 0) return;
  a.results.argmax[j] = id_of(row->best > best ? row->best : best);
  row->best = 0, row->listed = 0;
}

cudaError_t sample_filtered(const queue &stream, const reduction &a, int rows) {
  int most = 2 * MULTIPROCESSORS / rows, useful = blocks_of(a.outputs, THREADS);
  int blocks = most < 1 ? 1 : most < useful ? most : useful;
  dim3 grid((unsigned)blocks, (unsigned)rows);
  cudaError_t e = launch(stream, grid, THREADS, sizeof(bins), k_sample_count, a);
  return e ? e : launch(stream, grid, THREADS, sizeof(bins), k_sample, a);
}
