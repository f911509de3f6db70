/* Blocks of 256 numbers, in parts with separate scales: see types_decode.h. Q2_K, Q3_K and Q6_K keep their bits in two
 * halves of 128 numbers, each of four quarters of 32: a byte has bits of the same number in all four quarters. */
#include "model/types_decode.h"

enum { NUMBERS = 256 };

/* The place of number e: half, quarter of the half, number in the quarter. */
typedef struct {
  int half, quarter, i;
} place;

static place place_of(int e) { return (place){e / 128, e % 128 / 32, e % 32}; }

/* Two bits of number p from 64 bytes: Q2_K's and Q3_K's codes, the high bits of Q6_K's. */
static int two_bits(const uint8_t *q, place p) { return q[32 * p.half + p.i] >> 2 * p.quarter & 3; }

void type_q2_k(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 84, out += NUMBERS, n -= NUMBERS) {
    float d = type_half(b + 80), dmin = type_half(b + 82);
    for (int e = 0; e < NUMBERS; e++) {
      uint8_t scales = b[e / 16];
      out[e] = d * (float)(scales & 15) * (float)two_bits(b + 16, place_of(e)) - dmin * (float)(scales >> 4);
    }
  }
}

/* The six-bit scale of part g of 16: four bits in the first eight bytes, two in the last four. */
static int q3_scale(const uint8_t *s, int g) {
  int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
  return low | (s[8 + g % 4] >> 2 * (g / 4) & 3) << 4;
}

void type_q3_k(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 110, out += NUMBERS, n -= NUMBERS) {
    float d = type_half(b + 108);
    for (int e = 0; e < NUMBERS; e++) {
      place p = place_of(e);
      int high = b[p.i] >> (4 * p.half + p.quarter) & 1;
      out[e] = d * (float)(q3_scale(b + 96, e / 16) - 32) * (float)(two_bits(b + 32, p) - (high ? 0 : 4));
    }
  }
}

/* The six-bit scale and minimum of part g of 8, from twelve bytes. */
static void q4_scales(const uint8_t *s, int g, int *scale, int *min) {
  if (g < 4) {
    *scale = s[g] & 63;
    *min = s[g + 4] & 63;
  } else {
    *scale = (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    *min = s[g + 4] >> 4 | s[g] >> 6 << 4;
  }
}

/* Decodes Q4_K and Q5_K: d, dmin, scales, the fifth bits (NULL: none) and the lower four bits. */
static void decode_q45(const uint8_t *b, const uint8_t *fifth, const uint8_t *q, float *out) {
  float d = type_half(b), dmin = type_half(b + 2);
  for (int g = 0; g < 8; g++) {
    int scale, min;
    q4_scales(b + 4, g, &scale, &min);
    for (int i = 0; i < 32; i++) {
      int byte = q[32 * (g / 2) + i], code = g % 2 ? byte >> 4 : byte & 15;
      if (fifth) code |= (fifth[i] >> g & 1) << 4;
      out[32 * g + i] = d * (float)scale * (float)code - dmin * (float)min;
    }
  }
}

void type_q4_k(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 144, out += NUMBERS, n -= NUMBERS) decode_q45(b, NULL, b + 16, out);
}

void type_q5_k(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 176, out += NUMBERS, n -= NUMBERS) decode_q45(b, b + 16, b + 48, out);
}

void type_q6_k(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 210, out += NUMBERS, n -= NUMBERS) {
    float d = type_half(b + 208);
    for (int e = 0; e < NUMBERS; e++) {
      place p = place_of(e);
      int byte = b[64 * p.half + 32 * (p.quarter & 1) + p.i], low = p.quarter < 2 ? byte & 15 : byte >> 4;
      out[e] = d * (float)(int8_t)b[192 + e / 16] * (float)((low | two_bits(b + 128, p) << 4) - 32);
    }
  }
}

void type_iq4_xs(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 136, out += NUMBERS, n -= NUMBERS) {
    float d = type_half(b);
    int high = b[2] | b[3] << 8;
    for (int g = 0; g < 8; g++) {
      int low = g % 2 ? b[4 + g / 2] >> 4 : b[4 + g / 2] & 15;
      float scale = d * (float)((low | (high >> 2 * g & 3) << 4) - 32);
      for (int j = 0; j < 32; j++) {
        int byte = b[8 + 16 * g + j % 16];
        out[32 * g + j] = scale * (float)type_iq4_values[j < 16 ? byte & 15 : byte >> 4];
      }
    }
  }
}
