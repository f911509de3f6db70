/* Logits to a few numbers per row. First blocks of LOGIT_BLOCK ids: the likeliest by sorting, the parts of the softmax sums
 * (each thread its ids in order, then the tree of a warp, then the warps in order); then one warp per row merges the
 * blocks' sorted lists and adds the parts up, and writes to the host.
 *
 * Among candidates the order is that of a 64-bit key: the logit, as an integer that sorts like it, above the complement of
 * the id, so that of equal logits the lower id comes first. */
#include "launch.cuh"
#include "logits.cuh"

constexpr int THREADS = 256, WARPS = THREADS / WARP, EACH = LOGIT_BLOCK / THREADS;

static __device__ __forceinline__ uint64_t key_of(float logit, int id) {
  unsigned bits = __float_as_uint(logit + 0.0f); /* -0 is 0 */
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (uint64_t)bits << 32 | ~(unsigned)id;
}
static __device__ __forceinline__ int id_of(uint64_t key) { return (int)~(unsigned)key; }
static __device__ __forceinline__ float logit_of(uint64_t key) {
  unsigned bits = (unsigned)(key >> 32);
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

static __device__ __forceinline__ uint64_t warp_best(uint64_t key) {
  for (int bits = WARP / 2; bits; bits /= 2) {
    uint64_t other = __shfl_xor_sync(0xffffffffu, key, bits);
    if (other > key) key = other;
  }
  return key;
}

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
  DYNAMIC_SHARED(uint64_t, key); /* [LOGIT_BLOCK], then of each warp: the best key, two numbers */
  uint64_t *best = key + LOGIT_BLOCK;
  float *number = reinterpret_cast<float *>(best + WARPS), *second = number + WARPS;
  dependency_wait();
  dependency_release();
  int block = blockIdx.x, j = blockIdx.y, warp = threadIdx.x / WARP;
  int ids = a.top ? a.header->top_vocab : a.vocab;
  if (j >= a.header->wanted || block * LOGIT_BLOCK >= ids) return;
  float logit[EACH], largest = -INFINITY;
  uint64_t mine = 0;
  int nan = 0;
  for (int i = 0; i < EACH; i++) {
    int id = block * LOGIT_BLOCK + i * THREADS + (int)threadIdx.x;
    logit[i] = id < ids ? a.logits[(size_t)j * a.vocab + id] : -INFINITY;
    nan |= logit[i] != logit[i];
    uint64_t k = id < ids ? key_of(logit[i], id) : 0;
    key[i * THREADS + threadIdx.x] = k;
    if (k > mine) mine = k;
  }
  mine = warp_best(mine);
  float nans = warp_sum((float)nan);
  if (threadIdx.x % WARP == 0) best[warp] = mine, number[warp] = nans;
  __syncthreads();
  nans = 0.0f;
  for (int w = 0; w < WARPS; w++) {
    if (best[w] > mine) mine = best[w];
    nans += number[w];
  }
  largest = fmaxf(logit_of(mine), -3.40282347e38f); /* of infinities no differences */
  size_t at = (size_t)j * ((a.vocab + LOGIT_BLOCK - 1) / LOGIT_BLOCK) + block;
  float sum = 0.0f, weighted = 0.0f;
  if (a.top) {
    for (int i = 0; i < EACH; i++) {
      if (block * LOGIT_BLOCK + i * THREADS + (int)threadIdx.x >= ids) continue;
      float d = fmaxf(logit[i] - largest, -87.0f), e = expf(d);
      sum += e;
      weighted = fmaf(e, d, weighted);
    }
    sum = warp_sum(sum), weighted = warp_sum(weighted);
    __syncthreads();
    if (threadIdx.x % WARP == 0) number[warp] = sum, second[warp] = weighted;
    sort(key);
    sum = weighted = 0.0f;
    for (int w = 0; w < WARPS; w++) sum += number[w], weighted += second[w];
    if (threadIdx.x < CHECK_TOP) a.best[at * CHECK_TOP + threadIdx.x] = key[threadIdx.x];
  } else if (threadIdx.x == 0) {
    a.best[at * CHECK_TOP] = mine;
  }
  if (threadIdx.x == 0) a.parts[at] = logit_part{largest, sum, weighted, nans > 0.0f};
}

/* The next candidates of a row, by one warp: lane l has the sorted lists of blocks l, l + 32, .. and how far it took each. */
static __device__ void merge(const reduction &a, size_t first, int blocks, int j, double largest, double log_sum, bool usable,
                             int *taken) {
  const uint64_t *best = a.best + first * CHECK_TOP;
  for (int b = threadIdx.x; b < blocks; b += WARP) taken[b] = 0;
  for (int i = 0; i < a.header->top_k; i++) {
    uint64_t mine = 0;
    int from = 0;
    for (int b = threadIdx.x; b < blocks; b += WARP) {
      uint64_t k = taken[b] < CHECK_TOP ? best[b * CHECK_TOP + taken[b]] : 0;
      if (k > mine) mine = k, from = b;
    }
    uint64_t next = warp_best(mine);
    if (next && next == mine) taken[from]++;
    if (threadIdx.x) continue;
    bool there = usable && next;
    a.results.top_id[j * CHECK_TOP + i] = there ? id_of(next) : -1;
    a.results.top_logp[j * CHECK_TOP + i] = there ? (float)((double)logit_of(next) - largest - log_sum) : -INFINITY;
  }
}

static __global__ __launch_bounds__(WARP) void k_reduce_rows(reduction a) {
  DYNAMIC_SHARED(int, taken); /* [blocks of ids] */
  dependency_wait();
  dependency_release();
  int j = blockIdx.x;
  if (j >= a.header->wanted) return;
  int all = (a.vocab + LOGIT_BLOCK - 1) / LOGIT_BLOCK, ids = a.top ? a.header->top_vocab : a.vocab;
  int blocks = (ids + LOGIT_BLOCK - 1) / LOGIT_BLOCK;
  size_t first = (size_t)j * all;
  float largest = -INFINITY, nans = 0.0f;
  uint64_t best = 0;
  for (int b = threadIdx.x; b < blocks; b += WARP) {
    logit_part p = a.parts[first + b];
    largest = fmaxf(largest, p.max);
    nans += (float)p.nan;
    uint64_t k = a.best[(first + b) * CHECK_TOP];
    if (k > best) best = k;
  }
  largest = warp_max(largest), nans = warp_sum(nans), best = warp_best(best);
  if (!a.top) {
    if (threadIdx.x == 0) a.results.argmax[j] = nans > 0.0f ? -1 : id_of(best);
    return;
  }
  float sum = 0.0f, weighted = 0.0f;
  for (int b = threadIdx.x; b < blocks; b += WARP) {
    logit_part p = a.parts[first + b];
    float d = fmaxf(p.max - largest, -87.0f), e = expf(d);
    sum = fmaf(e, p.sum, sum);
    weighted = fmaf(e, fmaf(d, p.sum, p.weighted), weighted);
  }
  sum = warp_sum(sum), weighted = warp_sum(weighted);
  bool usable = nans == 0.0f && sum >= 1.0f && sum < INFINITY && fabsf(largest) < INFINITY;
  double log_sum = usable ? log((double)sum) : 0.0;
  if (threadIdx.x == 0) {
    a.results.confidence[j] = usable ? 1.0f / sum : 0.0f;
    a.results.entropy[j] = usable ? (float)(log_sum - (double)weighted / (double)sum) : 0.0f;
  }
  merge(a, first, blocks, j, (double)largest, log_sum, usable, taken);
}

cudaError_t reduce_logits(cudaStream_t stream, const reduction &a, int rows) {
  int blocks = blocks_of(a.vocab, LOGIT_BLOCK);
  size_t shared = sizeof(uint64_t) * (LOGIT_BLOCK + WARPS) + sizeof(float) * 2 * WARPS;
  cudaError_t e = launch(stream, dim3((unsigned)blocks, (unsigned)rows), THREADS, shared, k_reduce_blocks, a);
  if (e) return e;
  return launch(stream, dim3((unsigned)rows), WARP, sizeof(int) * (size_t)blocks, k_reduce_rows, a);
}
