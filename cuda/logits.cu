/* Logits to a few numbers per row. First blocks of LOGIT_BLOCK ids: the largest scores by sorting, the parts of the softmax
 * sums (each thread its ids in order, then the tree of a warp, then the warps in order); then one warp per row merges the
 * blocks' sorted lists and adds the parts up, and writes to the host. */
#include "launch.cuh"
#include "logits.cuh"
#include "scores.cuh"

constexpr int THREADS = LOGIT_BLOCK / SHARING, WARPS = THREADS / WARP;

/* Largest first, by all threads of the block. */
static __device__ void sort(uint64_t *key) {
  for (int size = 2; size <= LOGIT_BLOCK; size *= 2)
    for (int apart = size / 2; apart; apart /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < LOGIT_BLOCK / 2; i += THREADS) {
        int low = i / apart * 2 * apart + i % apart, high = low + apart;
        uint64_t a = key[low], b = key[high];
        if ((a < b) == !(low & size)) key[low] = b, key[high] = a;
      }
    }
  __syncthreads();
}

static __global__ __launch_bounds__(THREADS) void k_reduce_blocks(reduction a) {
  DYNAMIC_SHARED(uint64_t, key); /* [LOGIT_BLOCK], then of each warp: the best key, three numbers */
  uint64_t *best = key + LOGIT_BLOCK;
  float *number = reinterpret_cast<float *>(best + WARPS), *second = number + WARPS, *third = second + WARPS;
  dependency_release();
  int block = blockIdx.x, j = blockIdx.y, warp = threadIdx.x / WARP;
  int ids = a.top ? a.rows.header->top_vocab : a.vocab;
  if (j >= a.rows.header->wanted || block * LOGIT_BLOCK >= ids) return dependency_wait();
  dt_sampling s = a.rows.sampling[j];
  int position = a.rows.position[a.rows.wanted[j]];
  dependency_wait();
  unsigned counter = (unsigned)block * THREADS + threadIdx.x;
  int first = first_of(counter), nan = 0;
  float logit[SHARING], score[SHARING], largest = -3.40282347e38f, own_largest = largest; /* of infinities no differences */
  for (int i = 0; i < SHARING; i++) {
    int id = first + 16 * i;
    score[i] = logit[i] = id < ids ? a.logits[(size_t)j * a.vocab + id] : -INFINITY;
    nan |= logit[i] != logit[i];
    own_largest = fmaxf(own_largest, logit[i]);
  }
  if (s.temp > 0.0f && !a.quiet && (a.top || !draw_is_filtered(&s))) add_noise(s, position, counter, score);
  uint64_t mine = 0;
  for (int i = 0; i < SHARING; i++) {
    uint64_t k = first + 16 * i < ids ? key_of(score[i], first + 16 * i) : 0;
    if (k) largest = fmaxf(largest, score[i]);
    key[i * THREADS + threadIdx.x] = k;
    if (k > mine) mine = k;
  }
  mine = warp_best(mine), largest = warp_max(largest), own_largest = warp_max(own_largest);
  float nans = warp_sum((float)nan);
  if (threadIdx.x % WARP == 0) best[warp] = mine, number[warp] = nans, second[warp] = largest, third[warp] = own_largest;
  __syncthreads();
  nans = 0.0f;
  for (int w = 0; w < WARPS; w++) {
    if (best[w] > mine) mine = best[w];
    nans += number[w], largest = fmaxf(largest, second[w]), own_largest = fmaxf(own_largest, third[w]);
  }
  size_t at = (size_t)j * ((a.vocab + LOGIT_BLOCK - 1) / LOGIT_BLOCK) + block;
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
    sort(key);
    sum = weighted = own_sum = 0.0f;
    for (int w = 0; w < WARPS; w++) sum += number[w], weighted += second[w], own_sum += third[w];
    if (threadIdx.x < CHECK_TOP) a.best[at * CHECK_TOP + threadIdx.x] = key[threadIdx.x];
  } else if (threadIdx.x == 0) {
    a.best[at * CHECK_TOP] = mine;
  }
  if (threadIdx.x == 0) a.parts[at] = logit_part{largest, sum, weighted, own_largest, own_sum, nans > 0.0f};
}

/* The candidates of a row, by one warp: lane l has the sorted lists of blocks l, l + 32, .. and how far it took each; at
 * last lane i has candidate i. */
static __device__ void merge(const reduction &a, size_t first, int blocks, int j, int count, double log_sum,
                             double own_log_sum, bool usable, int *taken) {
  const uint64_t *best = a.best + first * CHECK_TOP;
  int lane = threadIdx.x;
  uint64_t own = 0;
  for (int b = lane; b < blocks; b += WARP) taken[b] = 0;
  for (int i = 0; i < count; i++) {
    uint64_t mine = 0;
    int from = 0;
    for (int b = lane; b < blocks; b += WARP) {
      uint64_t k = taken[b] < CHECK_TOP ? best[b * CHECK_TOP + taken[b]] : 0;
      if (k > mine) mine = k, from = b;
    }
    uint64_t next = warp_best(mine);
    if (next && next == mine) taken[from]++;
    if (lane == i) own = next;
  }
  if (lane >= count) return;
  bool there = usable && own;
  double logit = there ? (double)a.logits[(size_t)j * a.vocab + id_of(own)] : 0.0;
  a.results.top_id[j * CHECK_TOP + lane] = there ? id_of(own) : -1;
  a.results.top_logp[j * CHECK_TOP + lane] = there ? (float)((double)score_of(own) - log_sum) : -INFINITY;
  a.results.top_own[j * CHECK_TOP + lane] = there ? (float)(logit - own_log_sum) : -INFINITY;
}
static_assert(CHECK_TOP <= WARP, "a lane for every candidate");

static __global__ __launch_bounds__(WARP) void k_reduce_rows(reduction a) {
  DYNAMIC_SHARED(int, taken); /* [blocks of ids] */
  dependency_release();
  int j = blockIdx.x;
  if (j >= a.rows.header->wanted) return dependency_wait();
  int all = (a.vocab + LOGIT_BLOCK - 1) / LOGIT_BLOCK, ids = a.top ? a.rows.header->top_vocab : a.vocab;
  int blocks = (ids + LOGIT_BLOCK - 1) / LOGIT_BLOCK, count = a.rows.header->top_k;
  dependency_wait();
  size_t first = (size_t)j * all;
  float largest = -INFINITY, own_largest = -INFINITY, nans = 0.0f;
  uint64_t best = 0;
  for (int b = threadIdx.x; b < blocks; b += WARP) {
    logit_part p = a.parts[first + b];
    largest = fmaxf(largest, p.max), own_largest = fmaxf(own_largest, p.own_max);
    nans += (float)p.nan;
    uint64_t k = a.best[(first + b) * CHECK_TOP];
    if (k > best) best = k;
  }
  largest = warp_max(largest), own_largest = warp_max(own_largest);
  nans = warp_sum(nans), best = warp_best(best);
  if (!a.top) {
    if (threadIdx.x == 0) a.results.argmax[j] = nans > 0.0f ? -1 : id_of(best);
    return; /* draw_filtered overwrites what it draws */
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
  }
  merge(a, first, blocks, j, count, (double)largest + log_sum, (double)own_largest + log((double)own_sum), usable, taken);
}

cudaError_t reduce_logits(cudaStream_t stream, const reduction &a, int rows) {
  int blocks = blocks_of(a.vocab, LOGIT_BLOCK);
  size_t shared = sizeof(uint64_t) * (LOGIT_BLOCK + WARPS) + sizeof(float) * 3 * WARPS;
  cudaError_t e = launch(stream, dim3((unsigned)blocks, (unsigned)rows), THREADS, shared, k_reduce_blocks, a);
  if (e) return e;
  return launch(stream, dim3((unsigned)rows), WARP, sizeof(int) * (size_t)blocks, k_reduce_rows, a);
}
