/* Reduces logits to a few numbers per row. First, blocks of LOGIT_BLOCK ids: the largest scores, by lists that warps
 * sort and merge in registers, and the parts of the softmax sums (each thread sums its ids in order, then the tree of a
 * warp, then the warps in order). Then one block per row merges the lists; its first warp adds up the parts and writes
 * to the host. */
#include "launch.cuh"
#include "logits.cuh"
#include "scores.cuh"

constexpr int THREADS = LOGIT_BLOCK / SHARING, WARPS = THREADS / WARP;

/* Merges the lists of all warps; the first warp has the result. `lists` has room for all lists. */
static __device__ uint64_t merged_of_block(uint64_t mine, uint64_t *lists) {
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  lists[threadIdx.x] = mine;
  __syncthreads();
  if (warp > 0) return 0;
  uint64_t list[WARPS];
#pragma unroll
  for (int w = 0; w < WARPS; w++) list[w] = lists[w * WARP + lane];
#pragma unroll
  for (int n = WARPS / 2; n; n /= 2)
#pragma unroll
    for (int w = 0; w < WARPS / 2; w++)
      if (w < n) list[w] = merged(list[w], list[w + n]);
  return list[0];
}

static __global__ __launch_bounds__(THREADS) void k_reduce_blocks(reduction a) {
  DYNAMIC_SHARED(uint64_t, lists); /* [THREADS]; then for each warp the best key and three numbers */
  uint64_t *best = lists + THREADS;
  float *number = reinterpret_cast<float *>(best + WARPS), *second = number + WARPS, *third = second + WARPS;
  dependency_release();
  int block = blockIdx.x, j = blockIdx.y, warp = threadIdx.x / WARP;
  int ids = a.top ? a.rows.header->top_ids : a.outputs;
  if (j >= a.rows.header->wanted || block * LOGIT_BLOCK >= ids) return dependency_wait();
  dt_sampling s = a.rows.sampling[j];
  int position = position_of(a, j);
  dependency_wait();
  unsigned counter = (unsigned)block * THREADS + threadIdx.x;
  int first = first_of(counter), nan = 0;
  float logit[SHARING], score[SHARING];
  float largest = -3.40282347e38f, own_largest = largest; /* finite, since differences of infinities are NaN */
  for (int i = 0; i < SHARING; i++) {
    int id = first + 16 * i;
    score[i] = logit[i] = id < ids ? a.logits[(size_t)j * a.outputs + id] : -INFINITY;
    nan |= logit[i] != logit[i];
    own_largest = fmaxf(own_largest, logit[i]);
  }
  if (s.temp > 0.0f && !a.quiet && (a.top || !sample_is_filtered(&s))) {
    if (!a.ids) add_noise(s, position, counter, score);
    for (int i = 0; a.ids && i < SHARING; i++)
      if (first + 16 * i < ids) score[i] = with_word(s, sample_bits(s.seed, position, a.ids[first + 16 * i]), score[i]);
  }
  uint64_t key[SHARING], mine = 0;
  for (int i = 0; i < SHARING; i++) {
    key[i] = first + 16 * i < ids && score[i] > -INFINITY ? key_of(score[i], first + 16 * i) : 0; /* 0: no candidate */
    if (key[i]) largest = fmaxf(largest, score[i]);
    if (key[i] > mine) mine = key[i];
  }
  mine = warp_best(mine), largest = warp_max(largest), own_largest = warp_max(own_largest);
  float nans = warp_sum((float)nan);
  if (threadIdx.x % WARP == 0)
    best[warp] = mine, number[warp] = nans, second[warp] = largest, third[warp] = own_largest;
  __syncthreads();
  nans = 0.0f;
  for (int w = 0; w < WARPS; w++) {
    if (best[w] > mine) mine = best[w];
    nans += number[w], largest = fmaxf(largest, second[w]), own_largest = fmaxf(own_largest, third[w]);
  }
  size_t at = (size_t)j * ((a.outputs + LOGIT_BLOCK - 1) / LOGIT_BLOCK) + block;
  float sum = 0.0f, weighted = 0.0f, own_sum = 0.0f;
  if (a.top) {
    for (int i = 0; i < SHARING; i++) {
      if (first + 16 * i >= ids) continue;
      float d = fmaxf(score[i] - largest, -87.0f), e = expf(d);
      sum += e;
      weighted = fmaf(e, d, weighted);
      own_sum += expf(fmaxf(logit[i] - own_largest, -87.0f));
    }
    sum = warp_sum(sum), weighted = warp_sum(weighted), own_sum = warp_sum(own_sum);
    __syncthreads();
    if (threadIdx.x % WARP == 0) number[warp] = sum, second[warp] = weighted, third[warp] = own_sum;
    for (int i = 0; i < SHARING; i++) key[i] = sorted(key[i]);
    uint64_t list = merged_of_block(merged(merged(key[0], key[1]), merged(key[2], key[3])), lists);
    sum = weighted = own_sum = 0.0f;
    for (int w = 0; w < WARPS; w++) sum += number[w], weighted += second[w], own_sum += third[w];
    if (threadIdx.x < TOP) a.best[at * TOP + threadIdx.x] = list;
  } else if (threadIdx.x == 0) {
    a.best[at * TOP] = mine;
  }
  if (threadIdx.x == 0) a.parts[at] = logit_part{largest, sum, weighted, own_largest, own_sum, nans > 0.0f};
}

/* Lane i writes candidate i of a row, of `count` candidates. */
static __device__ void put_candidate(const reduction &a, int j, int count, uint64_t key, double log_sum,
                                     double own_log_sum, bool usable) {
  int i = threadIdx.x;
  if (i >= count) return;
  bool there = usable && key;
  double logit = there ? (double)a.logits[(size_t)j * a.outputs + id_of(key)] : 0.0;
  a.results.top_id[j * TOP + i] = !there ? -1 : a.ids ? a.ids[id_of(key)] : id_of(key);
  a.results.top_logp[j * TOP + i] = there ? (float)((double)score_of(key) - log_sum) : -INFINITY;
  a.results.top_own[j * TOP + i] = there ? (float)(logit - own_log_sum) : -INFINITY;
}

static __global__ __launch_bounds__(THREADS) void k_reduce_rows(reduction a) {
  DYNAMIC_SHARED(uint64_t, lists); /* [THREADS] */
  dependency_release();
  int j = blockIdx.x;
  if (j >= a.rows.header->wanted) return dependency_wait();
  int all = (a.outputs + LOGIT_BLOCK - 1) / LOGIT_BLOCK, ids = a.top ? a.rows.header->top_ids : a.outputs;
  int blocks = (ids + LOGIT_BLOCK - 1) / LOGIT_BLOCK, count = a.rows.header->top_k;
  dependency_wait();
  size_t first = (size_t)j * all;
  uint64_t list = 0;
  if (a.top) {
#pragma unroll 4
    for (int b = threadIdx.x / WARP; b < blocks; b += WARPS)
      list = merged(list, a.best[(first + b) * TOP + threadIdx.x % WARP]);
    list = merged_of_block(list, lists);
  }
  if (threadIdx.x >= WARP) return;
  float largest = -INFINITY, own_largest = -INFINITY, nans = 0.0f;
  uint64_t best = 0;
  for (int b = threadIdx.x; b < blocks; b += WARP) {
    logit_part p = a.parts[first + b];
    largest = fmaxf(largest, p.max), own_largest = fmaxf(own_largest, p.own_max);
    nans += (float)p.nan;
    uint64_t k = a.best[(first + b) * TOP];
    if (k > best) best = k;
  }
  largest = warp_max(largest), own_largest = warp_max(own_largest);
  nans = warp_sum(nans), best = warp_best(best);
  if (!a.top) {
    if (threadIdx.x == 0) a.results.argmax[j] = nans > 0.0f ? -1 : id_of(best);
    return; /* sample_filtered overwrites the rows that it samples */
  }
  float sum = 0.0f, weighted = 0.0f, own_sum = 0.0f;
  for (int b = threadIdx.x; b < blocks; b += WARP) {
    logit_part p = a.parts[first + b];
    float d = fmaxf(p.max - largest, -87.0f), e = expf(d);
    sum = fmaf(e, p.sum, sum);
    weighted = fmaf(e, fmaf(d, p.sum, p.weighted), weighted);
    own_sum = fmaf(expf(fmaxf(p.own_max - own_largest, -87.0f)), p.own_sum, own_sum);
  }
  sum = warp_sum(sum), weighted = warp_sum(weighted), own_sum = warp_sum(own_sum);
  bool usable = nans == 0.0f && sum >= 1.0f && sum < INFINITY && fabsf(largest) < INFINITY && own_sum >= 1.0f;
  double log_sum = usable ? log((double)sum) : 0.0;
  if (threadIdx.x == 0) {
    a.results.confidence[j] = usable ? 1.0f / sum : 0.0f;
    a.results.entropy[j] = usable ? (float)(log_sum - (double)weighted / (double)sum) : 0.0f;
    if (a.quiet) a.log_sums[j] = usable ? (double)largest + log_sum : NAN;
  }
  put_candidate(a, j, count, list, (double)largest + log_sum, (double)own_largest + log((double)own_sum), usable);
}

cudaError_t reduce_logits(const queue &stream, const reduction &a, int rows) {
  int blocks = blocks_of(a.outputs, LOGIT_BLOCK);
  size_t shared = sizeof(uint64_t) * (THREADS + WARPS) + sizeof(float) * 3 * WARPS;
  cudaError_t e = launch(stream, dim3((unsigned)blocks, (unsigned)rows), THREADS, shared, k_reduce_blocks, a);
  if (e) return e;
  return launch(stream, dim3((unsigned)rows), THREADS, sizeof(uint64_t) * THREADS, k_reduce_rows, a);
}
