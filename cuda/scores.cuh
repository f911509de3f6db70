/* The score of an id, its logit or the logit with the noise of sample.h, and the order of ids by score. */
#ifndef DT_CUDA_SCORES_CUH
#define DT_CUDA_SCORES_CUH

#include "internal.cuh"

/* The order of ids is that of a 64-bit key: the score, as an integer that sorts like it, above the complement of the
 * id, so that among equal scores the lower id comes first. No id has key 0. */
static __device__ __forceinline__ uint64_t key_of(float score, int id) {
  unsigned bits = __float_as_uint(score + 0.0f); /* -0 becomes 0 */
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (uint64_t)bits << 32 | ~(unsigned)id;
}
static __device__ __forceinline__ int id_of(uint64_t key) { return (int)~(unsigned)key; }
static __device__ __forceinline__ float score_of(uint64_t key) {
  unsigned bits = (unsigned)(key >> 32);
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

/* The largest key over the lanes of a warp, in every lane. */
static __device__ __forceinline__ uint64_t warp_best(uint64_t key) {
  for (int bits = WARP / 2; bits; bits /= 2) {
    uint64_t other = __shfl_xor_sync(0xffffffffu, key, bits);
    if (other > key) key = other;
  }
  return key;
}

/* A list: lane i of a warp has the i-th largest of WARP keys. This is a step of Batcher's sorting networks: of two
 * lanes `distance` from each other, one keeps the larger key. */
static __device__ __forceinline__ uint64_t exchange(uint64_t key, int distance, bool larger) {
  uint64_t other = __shfl_xor_sync(0xffffffffu, key, distance);
  return (other > key) == larger ? other : key;
}
static __device__ __forceinline__ uint64_t sorted(uint64_t key) {
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int size = 2; size <= WARP; size *= 2)
#pragma unroll
    for (int distance = size / 2; distance; distance /= 2)
      key = exchange(key, distance, !(lane & distance) == !(lane & size));
  return key;
}
/* The WARP largest keys of two lists. */
static __device__ __forceinline__ uint64_t merged(uint64_t a, uint64_t b) {
  int lane = threadIdx.x % WARP;
  b = __shfl_xor_sync(0xffffffffu, b, WARP - 1);
  if (b > a) a = b;
#pragma unroll
  for (int distance = WARP / 2; distance; distance /= 2) a = exchange(a, distance, !(lane & distance));
  return a;
}

/* Ids id, id + 16, id + 32, id + 48 share counter c of the noise, so a thread takes them together. */
constexpr int SHARING = 4;
static __device__ __forceinline__ int first_of(unsigned counter) { return (int)(counter / 16 * 64 + counter % 16); }

static __device__ __forceinline__ float with_word(const dt_sampling &s, uint32_t word, float logit) {
  float u = fminf(fmaf((float)word, 0x1p-32f, 0x1p-33f), 1.0f - 0x1p-24f);
  return fmaf(logit, 1.0f / s.temp, -logf(-log1pf(-u)));
}

/* Turns their logits into logit / temp + G. */
static __device__ __forceinline__ void add_noise(const dt_sampling &s, int position, unsigned counter, float *score) {
  uint32_t word[SHARING];
  sample_words(s.seed, position, counter, word);
#pragma unroll
  for (int i = 0; i < SHARING; i++) score[i] = with_word(s, word[i], score[i]);
}

#endif
