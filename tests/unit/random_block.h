/* Random numbers of any type, and blocks of random bytes with scales that keep their numbers in a sane range, for
 * models with random weights. */
#ifndef RANDOM_BLOCK_H
#define RANDOM_BLOCK_H

#include "model/types.h"

#include <math.h>
#include <string.h>

/* Writes the number as F32, BF16 or F16. */
static inline void put_random(dt_dtype dtype, float x, char *to) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  uint16_t half = (uint16_t)(bits >> 16);
  if (dtype == DT_F16) /* the fraction is cut to 10 bits; numbers that are too small become zero */
    half =
        (uint16_t)((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) < 0x38800000 ? 0 : ((bits >> 13) & 0x3ffff) - 0x1c000));
  if (dtype == DT_F32)
    memcpy(to, &x, 4);
  else
    memcpy(to, &half, 2);
}

/* How large the numbers of a block with scale 1 are, and where its f16 scale and minimum are; -1: it has none. */
typedef struct {
  dt_dtype dtype;
  float steps;
  int scale, minimum;
} block_kind;

static inline block_kind block_kind_of(dt_dtype dtype) {
  static const block_kind kinds[] = {{DT_Q4_0, 8, 0, -1},        {DT_Q5_0, 16, 0, -1},        {DT_Q5_1, 16, 0, 2},
                                     {DT_Q8_0, 128, 0, -1},      {DT_Q4_1, 8, 0, 2},          {DT_Q4_K, 8 * 32, 0, 2},
                                     {DT_Q5_K, 16 * 32, 0, 2},   {DT_Q6_K, 32 * 32, 208, -1}, {DT_Q2_K, 2 * 8, 80, 82},
                                     {DT_Q3_K, 4 * 16, 108, -1}, {DT_IQ4_XS, 64 * 16, 0, -1}, {DT_IQ4_NL, 64, 0, -1}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].dtype == dtype) return kinds[i];
  return (block_kind){dtype, 12, -1, -1}; /* MXFP4 */
}

/* Gives a block of random bytes such scales and minima that its numbers are normal and about as large as `size`. */
static inline void scale_block(dt_dtype dtype, float size, char *block) {
  const block_kind kind = block_kind_of(dtype);
  if (kind.scale >= 0) put_random(DT_F16, size / kind.steps, block + kind.scale);
  if (kind.minimum >= 0)
    put_random(DT_F16,
               dtype == DT_Q4_1 || dtype == DT_Q5_1 ? -size
               : dtype == DT_Q2_K                   ? size / 8
                                                    : size / 32,
               block + kind.minimum);
  if (dtype == DT_MXFP4) block[0] = (char)(128 + ilogbf(size / kind.steps));
}

#endif
