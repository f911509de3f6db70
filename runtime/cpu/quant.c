/* Takes blocks of a file apart into codes, scales and minima, and lays these out for sixteen outputs at a time: see
 * quant.h. */
#include "quant.h"

#include "model/types_decode.h"

#include <stdbool.h>
#include <string.h>

/* The part of one output in a cell, whatever its type. */
typedef struct {
  uint8_t code[QUANT_CELL];
  uint16_t scale[QUANT_BLOCKS], minimum[QUANT_BLOCKS]; /* f16, one per group */
  /* One per group: whole numbers, a scale perhaps signed; QUANT_E8M0: exponents; QUANT_HALVES_MIN: scales have both. */
  uint8_t byte_scale[16], byte_minimum[QUANT_BLOCKS];
  uint16_t d, dmin; /* f16 */
} share;

static uint16_t u16_at(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

/* ---- a block of a file -> its codes and scales: the inverse of types.c's decoders -------------------------------- */

static void nibbles(const uint8_t *q, uint8_t *code) {
  for (int j = 0; j < 16; j++) code[j] = q[j] & 15, code[j + 16] = q[j] >> 4;
}

static void fifth_bits(const uint8_t *h, uint8_t *code) {
  for (int j = 0; j < 32; j++) code[j] |= (uint8_t)((h[j / 8] >> j % 8 & 1) << 4);
}

/* Unpacks eight scales and eight minima of six bits each. */
static void k_scales(const uint8_t *s, share *to) {
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
  for (int g = 0; g < QUANT_BLOCKS; g++)
    for (int i = 0; i < QUANT_BLOCK; i++) *code++ |= (uint8_t)((h[i] >> g & 1) << 2);
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

static void take_apart(dt_dtype dtype, const uint8_t *b, int blocks, share *to) {
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
    for (int g = 0; g < QUANT_BLOCKS; g++) nibbles(b + 8 + 16 * g, to->code + QUANT_BLOCK * g);
    return;
  default: break;
  }
  for (int i = 0; i < blocks; i++, b += bytes) {
    uint8_t *code = to->code + QUANT_BLOCK * i;
    to->scale[i] = u16_at(b), to->minimum[i] = u16_at(b + 2);
    switch (dtype) {
    case DT_MXFP4: to->byte_scale[i] = b[0], nibbles(b + 1, code); break;
    case DT_Q4_0:
    case DT_IQ4_NL: nibbles(b + 2, code); break;
    case DT_Q4_1: nibbles(b + 4, code); break;
    case DT_Q5_0: nibbles(b + 6, code), fifth_bits(b + 2, code); break;
    case DT_Q5_1: nibbles(b + 8, code), fifth_bits(b + 4, code); break;
    default: /* Q8_0 */
      for (int j = 0; j < QUANT_BLOCK; j++) code[j] = (uint8_t)(b[2 + j] ^ 0x80);
    }
  }
}

/* ---- the layout -------------------------------------------------------------------------------------------------- */

static void put_four(uint8_t *line, int output, uint32_t four) { memcpy(line + 4 * output, &four, sizeof four); }

/* Lower bits of a code, in as many lines; and bits in a plane. */
static int lower(int bits) { return bits < 4 ? 2 : 4; }

/* Writes four codes at a time, as the bytes of a word: no shift carries a bit from one byte into the next. */
static void put_codes(int bits, const uint8_t *code, int output, uint8_t *to) {
  const int lines = lower(bits), upper = bits - lines;
  uint32_t four[8], line[8] = {0};
  memcpy(four, code, sizeof four);
  if (bits == 8) memcpy(line, four, sizeof line);
  for (int t = 0; bits < 8 && t < 8; t++) {
    line[t % lines] |= (four[t] & (lines == 2 ? 0x03030303 : 0x0f0f0f0f)) << t / lines * lines;
    if (upper == 1) line[lines] |= (four[t] >> lines & 0x01010101) << t;
    if (upper == 2) line[lines + t / 4] |= (four[t] >> lines & 0x03030303) << 2 * (t % 4);
  }
  for (int i = 0; i < bits; i++) put_four(to + 64 * i, output, line[i]);
}

static uint8_t get_code(int bits, const uint8_t *from, int k, int output) {
  const int four = k / 4, lane = 4 * output + k % 4, lines = lower(bits), upper = bits - lines;
  if (bits == 8) return from[64 * four + lane];
  int code = from[64 * (four % lines) + lane] >> four / lines * lines & ((1 << lines) - 1);
  if (upper == 1) code |= (from[64 * lines + lane] >> four & 1) << lines;
  if (upper == 2) code |= (from[64 * (lines + four / 4) + lane] >> 2 * (four % 4) & 3) << lines;
  return (uint8_t)code;
}

static void put_u16(const uint8_t *line, int output, uint16_t x) { memcpy((uint8_t *)line + 2 * output, &x, 2); }

static float f16_at(const uint8_t *line, int output) {
  float x;
  dt_type_of(DT_F16)->decode(line + 2 * output, 1, &x);
  return x;
}

/* Place of a byte of two groups: those of groups 2 i and 2 i + 1 lie side by side. */
static size_t side_by_side(int group, int output) { return (size_t)(32 * (group / 2) + 2 * output + group % 2); }

static size_t byte_scale(const quant_format *f, int group, int output) {
  return f->scales == QUANT_HALVES_MIN ? side_by_side(group, output) : (size_t)(16 * group + output);
}

static void put_share(const quant_format *f, const share *from, const quant_cell *c, int output) {
  for (int b = 0; b < c->blocks; b++)
    put_codes(f->bits, from->code + QUANT_BLOCK * b, output, (uint8_t *)c->codes + (size_t)b * quant_block_bytes(f));
  for (int g = 0; g < c->groups; g++) {
    if (quant_scale_bytes(f) == 1)
      ((uint8_t *)c->scales)[byte_scale(f, g, output)] = from->byte_scale[g];
    else
      put_u16(c->scales + 32 * g, output, from->scale[g]);
    if (f->scales == QUANT_F16_MIN) put_u16(c->minima + 32 * g, output, from->minimum[g]);
    if (f->scales == QUANT_WHOLE_MIN) ((uint8_t *)c->minima)[side_by_side(g, output)] = from->byte_minimum[g];
  }
  if (quant_is_whole(f)) put_u16(c->d, output, from->d);
  if (quant_has_whole_minima(f)) put_u16(c->dmin, output, from->dmin);
}

void quant_pack(const quant_format *f, const void *blocks, int k, int output, uint8_t *strip) {
  const uint8_t *from = blocks;
  for (int at = 0; at < k; at += QUANT_CELL) {
    quant_cell c = quant_cell_at(f, strip, k - at);
    share s = {.d = 0};
    take_apart(f->dtype, from, c.blocks, &s);
    put_share(f, &s, &c, output);
    from += dt_row_bytes(f->dtype, (size_t)c.blocks * QUANT_BLOCK);
    strip += c.bytes;
  }
}

/* A weight of the group is (code - zero) * scale + minimum, computed with the operations of the decoders of types.h, in
 * their order. A minimum of minus zero changes nothing. */
typedef struct {
  float scale, minimum;
} group_scale;

static group_scale scale_of(const quant_format *f, const quant_cell *c, int g, int output) {
  const uint8_t byte = c->scales[byte_scale(f, g, output)];
  switch (f->scales) {
  case QUANT_E8M0: return (group_scale){type_half_power(byte), -0.0f};
  case QUANT_F16: return (group_scale){f16_at(c->scales + 32 * g, output), -0.0f};
  case QUANT_F16_MIN: return (group_scale){f16_at(c->scales + 32 * g, output), f16_at(c->minima + 32 * g, output)};
  default: break;
  }
  const float d = f16_at(c->d, output);
  if (f->scales == QUANT_WHOLE) return (group_scale){d * (float)(int8_t)byte, -0.0f};
  const bool halves = f->scales == QUANT_HALVES_MIN;
  const int scale = halves ? byte & 15 : byte, minimum = halves ? byte >> 4 : c->minima[side_by_side(g, output)];
  return (group_scale){d * (float)scale, -(f16_at(c->dmin, output) * (float)minimum)};
}

void quant_unpack(const quant_format *f, const uint8_t *strip, int k, int output, float *out) {
  for (int at = 0; at < k; at += QUANT_CELL) {
    quant_cell c = quant_cell_at(f, strip, k - at);
    for (int g = 0; g < c.groups; g++) {
      group_scale s = scale_of(f, &c, g, output);
      int first = g * f->group;
      const uint8_t *block = c.codes + (size_t)(first / QUANT_BLOCK) * quant_block_bytes(f);
      for (int i = first; i < first + f->group; i++) {
        int code = get_code(f->bits, block, i % QUANT_BLOCK, output);
        if (f->values != QUANT_ITSELF) code = quant_table(f)[code];
        out[at + i] = s.scale * (float)(code - f->zero) + s.minimum;
      }
    }
    strip += c.bytes;
  }
}
