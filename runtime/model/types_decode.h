/* The decoders of types.c's table, and their inverses, which round. Formulas and the order of operations are those of
 * the gguf package for Python, so results are equal to the bit. d, dmin and m are a block's f16 factors. */
#ifndef DT_TYPES_DECODE_H
#define DT_TYPES_DECODE_H

#include "model/types.h"

#include <string.h>

/* Returns the f16 at p as f32. Subnormals are computed by a subtraction, which is exact; infinities and NaN keep their
 * bits. */
static inline float type_half(const uint8_t *p) {
  uint32_t h = (uint32_t)p[0] | (uint32_t)p[1] << 8, sign = (h & 0x8000u) << 16, rest = (h & 0x7fffu) << 13;
  float value, magic = 0x1p-14f;
  if (h & 0x7c00u) {
    rest += (h & 0x7c00u) == 0x7c00u ? (255u - 31u) << 23 : (127u - 15u) << 23;
    memcpy(&value, &rest, sizeof value);
  } else {
    rest += (127u - 14u) << 23;
    memcpy(&value, &rest, sizeof value);
    value -= magic;
  }
  memcpy(&rest, &value, sizeof rest);
  rest |= sign;
  memcpy(&value, &rest, sizeof value);
  return value;
}

/* Stores x rounded to the nearest f16, ties to even; from 65520 on, infinity. */
static inline void type_put_half(float x, uint8_t *p) {
  uint32_t bits, rest, half;
  memcpy(&bits, &x, sizeof bits);
  rest = bits & 0x7fffffffu;
  if (rest >= 0x477ff000u) { /* NaN stays one */
    half = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (rest < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, the value of the last bit of 0.5 */
    float small, one_half = 0.5f;
    uint32_t sum, base;
    memcpy(&small, &rest, sizeof small);
    small += one_half;
    memcpy(&sum, &small, sizeof sum), memcpy(&base, &one_half, sizeof base);
    half = sum - base;
  } else { /* round to nearest, ties to even */
    half = (rest + 0x0fffu + (rest >> 13 & 1) - 0x38000000u) >> 13;
  }
  half |= bits >> 16 & 0x8000u;
  p[0] = (uint8_t)half, p[1] = (uint8_t)(half >> 8);
}

/* Returns half of 2^(exponent - 127), the scale of MXFP4. It is halved because the table's values are doubled, to be
 * integers. */
static inline float type_half_power(uint8_t exponent) {
  uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (uint32_t)(exponent - 1) << 23;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The values that the four-bit codes of IQ4_NL and IQ4_XS stand for, and twice the values of MXFP4's. */
extern const int8_t type_iq4_values[16], type_fp4_values[16];

/* types_32.c has the types with blocks of 32 numbers; types_256.c those with blocks of 256, in parts of 16 or 32
 * numbers with their own scales. */
#define DECLARE_TYPE(name, decoder, ggml, numbers, bytes) void type_##decoder(const void *blocks, size_t n, float *out);
DT_TYPE_LIST(DECLARE_TYPE)
#define DECLARE_ROUND(name, function) dt_round type_round_##function;
DT_ROUND_LIST(DECLARE_ROUND)

#endif
