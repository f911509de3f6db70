/* How tokens are sampled. Shared by the public API (dtrun.h) and by the backends, which do it.
 *
 * temp = 0: the id with the largest logit. Otherwise the Gumbel-max trick: among the allowed ids, the one with the
 * largest
 *   logit / temp + G(seed, position, id),   G = -ln(-ln(1 - u)),   u = (sample_bits + 1/2) / 2^32.
 * This samples from softmax(logit / temp) over the allowed ids (to 2^-32). A seed gives the same token in every pass.
 * Ties go to the lowest id.
 *
 * The allowed ids are the first ones in the order of falling logit (ties by lower id). With p = softmax(logit / temp),
 * three filters apply, each to what the previous one left:
 *   top_k: the first top_k ids;
 *   top_p: an id stays if the ids before it hold less than top_p of the sum of p; the first id always stays;
 *   min_p: the ids with p >= min_p * the largest p.
 * Order and meaning are those of Hugging Face transformers (llama.cpp applies the temperature last). */
#ifndef DT_SAMPLE_H
#define DT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* CUDA's compiler needs a mark on functions that also run on a device. */
#if defined(__CUDACC__)
#define SAMPLE_FUNCTION static inline __host__ __device__
#else
#define SAMPLE_FUNCTION static inline
#endif

typedef struct {
  uint64_t seed;
  float temp;  /* 0: no sampling, and the other fields are ignored */
  int top_k;   /* 0: all */
  float top_p; /* 0 and 1: all */
  float min_p; /* 0: all */
} dt_sampling;

/* Returns whether a filter may exclude some ids. */
SAMPLE_FUNCTION bool sample_is_filtered(const dt_sampling *s) {
  return s->temp > 0.0f && (s->top_k > 0 || s->min_p > 0.0f || (s->top_p > 0.0f && s->top_p < 1.0f));
}

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011): the counter in
 * `word` becomes the four numbers that belong to it. */
#define PHILOX_ROUNDS 10
#define PHILOX_TIMES_A 0xD2511F53u
#define PHILOX_TIMES_C 0xCD9E8D57u
#define PHILOX_STEP_0 0x9E3779B9u
#define PHILOX_STEP_1 0xBB67AE85u
SAMPLE_FUNCTION void sample_philox(uint64_t key, uint32_t word[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += PHILOX_STEP_0, k1 += PHILOX_STEP_1) {
    uint64_t p = (uint64_t)PHILOX_TIMES_A * word[0], q = (uint64_t)PHILOX_TIMES_C * word[2];
    word[0] = (uint32_t)(q >> 32) ^ word[1] ^ k0;
    word[1] = (uint32_t)q;
    word[2] = (uint32_t)(p >> 32) ^ word[3] ^ k1;
    word[3] = (uint32_t)p;
  }
}

/* The random bits from which G is computed. The seed is the key. Word w of counter c belongs to id c / 16 * 64 + 16 w +
 * c % 16: 64 successive ids use 16 successive counters, so that each of 16 vector lanes can count by itself. */
SAMPLE_FUNCTION void sample_words(uint64_t seed, int32_t position, uint32_t counter, uint32_t word[4]) {
  word[0] = counter, word[1] = (uint32_t)position, word[2] = word[3] = 0;
  sample_philox(seed, word);
}
SAMPLE_FUNCTION uint32_t sample_bits(uint64_t seed, int32_t position, int32_t id) {
  uint32_t word[4];
  sample_words(seed, position, (uint32_t)id / 64 * 16 + (uint32_t)id % 16, word);
  return word[(uint32_t)id / 16 % 4];
}

#endif
