/* Takes blocks of a file apart into codes, scales and minima: see types_apart.h. */
#include "model/types_apart.h"
#include "model/types_decode.h"

#include <string.h>

static uint16_t u16_at(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static void nibbles(const uint8_t *q, uint8_t *code) {
  for (int j = 0; j < 16; j++) code[j] = q[j] & 15, code[j + 16] = q[j] >> 4;
}

static void fifth_bits(const uint8_t *h, uint8_t *code) {
  for (int j = 0; j < 32; j++) code[j] |= (uint8_t)((h[j / 8] >> j % 8 & 1) << 4);
}

/* Unpacks eight scales and eight minima of six bits each. */
static void k_scales(const uint8_t *s, dt_codes *to) {
  for (int g = 0; g < 8; g++) {
    to->byte_scale[g] = g < 4 ? s[g] & 63 : (uint8_t)((s[g + 4] & 15) | (s[g - 4] >> 6) << 4);
    to->byte_minimum[g] = g < 4 ? s[g + 4] & 63 : (uint8_t)(s[g + 4] >> 4 | (s[g] >> 6) << 4);
  }
}

/* Unpacks codes: groups 2 i and 2 i + 1 are the low and the high halves of 32 bytes. */
static void k_codes(const uint8_t *q, const uint8_t *high, uint8_t *code) {
  for (int g = 0; g < 8; g += 2, q += 32, code += 64) {
    for (int i = 0; i < 32; i++) code[i] = q[i] & 15, code[32 + i] = q[i] >> 4;
    for (int i = 0; high && i < 64; i++) code[i] |= (uint8_t)((high[i % 32] >> (g + i / 32) & 1) << 4);
  }
}

/* Unpacks 128 codes from 64 bytes of lower bits and 32 bytes of upper bits. */
static void q6_codes(const uint8_t *low, const uint8_t *high, uint8_t *code) {
  for (int n = 0; n < 2; n++, low += 64, high += 32, code += 128)
    for (int i = 0; i < 32; i++) {
      code[i] = (uint8_t)((low[i] & 15) | (high[i] & 3) << 4);
      code[32 + i] = (uint8_t)((low[32 + i] & 15) | (high[i] >> 2 & 3) << 4);
      code[64 + i] = (uint8_t)(low[i] >> 4 | (high[i] >> 4 & 3) << 4);
      code[96 + i] = (uint8_t)(low[32 + i] >> 4 | high[i] >> 6 << 4);
    }
}

/* Unpacks 128 codes from 32 bytes of two bits each. */
static void two_bits(const uint8_t *q, uint8_t *code) {
  for (int n = 0; n < 2; n++, q += 32)
    for (int quarter = 0; quarter < 4; quarter++)
      for (int i = 0; i < 32; i++) *code++ = q[i] >> 2 * quarter & 3;
}

/* Adds the third bits: bit g of byte i is that of number i of block g. */
static void third_bits(const uint8_t *h, uint8_t *code) {
  for (int g = 0; g < DT_CELL_BLOCKS; g++)
    for (int i = 0; i < DT_BLOCK; i++) *code++ |= (uint8_t)((h[i] >> g & 1) << 2);
}

/* Unpacks sixteen signed scales of six bits each. */
static void q3_scales(const uint8_t *s, uint8_t *scale) {
  for (int g = 0; g < 16; g++) {
    int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
    scale[g] = (uint8_t)((low | (s[8 + g % 4] >> 2 * (g / 4) & 3) << 4) - 32);
  }
}

/* Unpacks eight signed scales of six bits each: the lower four, and the upper two. */
static void iq4_scales(const uint8_t *low, int high, uint8_t *scale) {
  for (int g = 0; g < 8; g++) scale[g] = (uint8_t)(((low[g / 2] >> 4 * (g % 2) & 15) | (high >> 2 * g & 3) << 4) - 32);
}

const int8_t *dt_code_values(dt_dtype dtype) {
  if (dtype == DT_MXFP4) return type_fp4_values;
  return dtype == DT_IQ4_NL || dtype == DT_IQ4_XS ? type_iq4_values : NULL;
}

void dt_take_apart(dt_dtype dtype, const void *from, int blocks, dt_codes *to) {
  const uint8_t *b = from;
  size_t bytes = (size_t)dt_type_of(dtype)->bytes;
  switch (dtype) {
  case DT_Q4_K:
  case DT_Q5_K:
    to->d = u16_at(b), to->dmin = u16_at(b + 2);
    k_scales(b + 4, to);
    if (dtype == DT_Q4_K)
      k_codes(b + 16, NULL, to->code);
    else
      k_codes(b + 48, b + 16, to->code);
    return;
  case DT_Q6_K:
    to->d = u16_at(b + 208);
    memcpy(to->byte_scale, b + 192, 16);
    q6_codes(b, b + 128, to->code);
    return;
  case DT_Q2_K:
    to->d = u16_at(b + 80), to->dmin = u16_at(b + 82);
    memcpy(to->byte_scale, b, 16);
    two_bits(b + 16, to->code);
    return;
  case DT_Q3_K:
    to->d = u16_at(b + 108);
    q3_scales(b + 96, to->byte_scale);
    two_bits(b + 32, to->code), third_bits(b, to->code);
    return;
  case DT_IQ4_XS:
    to->d = u16_at(b);
    iq4_scales(b + 4, u16_at(b + 2), to->byte_scale);
    for (int g = 0; g < DT_CELL_BLOCKS; g++) nibbles(b + 8 + 16 * g, to->code + DT_BLOCK * g);
    return;
  default: break;
  }
  for (int i = 0; i < blocks; i++, b += bytes) {
    uint8_t *code = to->code + DT_BLOCK * i;
    to->scale[i] = u16_at(b), to->minimum[i] = u16_at(b + 2);
    switch (dtype) {
    case DT_MXFP4: to->byte_scale[i] = b[0], nibbles(b + 1, code); break;
    case DT_Q4_0:
    case DT_IQ4_NL: nibbles(b + 2, code); break;
    case DT_Q4_1: nibbles(b + 4, code); break;
    case DT_Q5_0: nibbles(b + 6, code), fifth_bits(b + 2, code); break;
    case DT_Q5_1: nibbles(b + 8, code), fifth_bits(b + 4, code); break;
    default: /* Q8_0 */
      for (int j = 0; j < DT_BLOCK; j++) code[j] = (uint8_t)(b[2 + j] ^ 0x80);
    }
  }
}
