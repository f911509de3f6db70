/* Blocks of 32 numbers with one scale: see types_decode.h. A byte's low half is of the block's first sixteen numbers, its
 * high half of the last sixteen. */
#include "model/types_decode.h"

enum { NUMBERS = 32, HALF = 16 };

const int8_t type_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

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
