/* Blocks of 32 numbers with one scale: see types_decode.h. The low halves of the bytes are the block's first sixteen
 * numbers, the high halves the last sixteen. */
#include "model/types_decode.h"

#include <math.h>

enum { NUMBERS = 32, HALF = 16 };

const int8_t type_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* Twice the values of MXFP4's codes, which are four-bit numbers (E2M1). */
const int8_t type_fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static uint32_t four_bytes(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The code of number j: four bits of q, and a fifth from `high` (0 for four-bit types). */
static int code(const uint8_t *q, uint32_t high, int j) {
  int four = j < HALF ? q[j] & 15 : q[j - HALF] >> 4;
  return four | (int)(high >> j & 1) << 4;
}

void type_q4_0(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 18, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half(b) * (float)(code(b + 2, 0, j) - 8);
}

void type_q4_1(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 20, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half(b) * (float)code(b + 4, 0, j) + type_half(b + 2);
}

void type_q5_0(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 22, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half(b) * (float)(code(b + 6, four_bytes(b + 2), j) - 16);
}

void type_q5_1(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 24, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++)
      out[j] = type_half(b) * (float)code(b + 8, four_bytes(b + 4), j) + type_half(b + 2);
}

void type_q8_0(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 34, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half(b) * (float)(int8_t)b[2 + j];
}

void type_iq4_nl(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 18, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half(b) * (float)type_iq4_values[code(b + 2, 0, j)];
}

void type_mxfp4(const void *blocks, size_t n, float *out) {
  for (const uint8_t *b = blocks; n > 0; b += 17, out += NUMBERS, n -= NUMBERS)
    for (int j = 0; j < NUMBERS; j++) out[j] = type_half_power(b[0]) * (float)type_fp4_values[code(b + 1, 0, j)];
}

/* ---- rounding ---------------------------------------------------------------------------------------------------- */

/* Returns 0, or NaN if a number of the block is not finite; it is added to the scale to mark the block. */
static float doubt(const float *x) {
  float sum = 0.0f;
  for (int j = 0; j < NUMBERS; j++) sum += x[j] * 0.0f;
  return sum;
}

/* 1 / d; 0 if that is not finite, or if d is 0 or NaN. */
static float inverse(float d) { return d > 0.0f && isfinite(1.0f / d) ? 1.0f / d : 0.0f; }

/* The larger and the smaller of two numbers; y if x is NaN. In place of fmaxf, fminf and roundf, which are calls: these
 * loops become vector instructions, and rounding a head of a billion weights takes seconds. */
static inline float larger(float x, float y) { return x > y ? x : y; }
static inline float smaller(float x, float y) { return x < y ? x : y; }

/* x between least and most; least for NaN. */
static inline float clip(float x, float least, float most) { return smaller(larger(x, least), most); }

/* The nearest whole number; halves away from zero. |x| < 2^31. */
static inline int nearest(float x) {
  const int whole = (int)x;
  const float rest = x - (float)whole;
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* d = largest |x| / 127; halves away from zero. */
void type_round_q8_0(const float *x, size_t n, void *blocks) {
  for (uint8_t *b = blocks; n > 0; b += 34, x += NUMBERS, n -= NUMBERS) {
    float most = 0.0f;
    for (int j = 0; j < NUMBERS; j++) most = larger(fabsf(x[j]), most);
    float d = most / 127.0f + doubt(x), scale = inverse(d);
    type_put_half(d, b);
    for (int j = 0; j < NUMBERS; j++) b[2 + j] = (uint8_t)nearest(clip(x[j] * scale, -127.0f, 127.0f));
  }
}

/* The minimum is the least number, code 15 the largest; d = their distance / 15. */
void type_round_q4_1(const float *x, size_t n, void *blocks) {
  for (uint8_t *b = blocks; n > 0; b += 20, x += NUMBERS, n -= NUMBERS) {
    float least = INFINITY, most = -INFINITY;
    for (int j = 0; j < NUMBERS; j++) least = smaller(x[j], least), most = larger(x[j], most);
    float d = (most - least) / 15.0f + doubt(x), scale = inverse(d);
    type_put_half(d, b), type_put_half(least, b + 2);
    for (int j = 0; j < HALF; j++) {
      int low = (int)clip((x[j] - least) * scale + 0.5f, 0.0f, 15.0f);
      int high = (int)clip((x[j + HALF] - least) * scale + 0.5f, 0.0f, 15.0f);
      b[4 + j] = (uint8_t)(low | high << 4);
    }
  }
}
