/* Takes blocks of a file apart into codes, scales and minima, and lays these out for sixteen outputs at a time: see
 * quant.h. */
#include "quant.h"

#include <string.h>

/* The part of one output in a cell, whatever its type. */
typedef struct {
  uint8_t code[QUANT_CELL];
  uint16_t scale[QUANT_BLOCKS], minimum[QUANT_BLOCKS];  /* f16, one per group */
  uint8_t whole_scale[16], whole_minimum[QUANT_BLOCKS]; /* whole numbers; a scale may be a signed byte */
  uint16_t d, dmin;                                     /* f16 */
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
    to->whole_scale[g] = g < 4 ? s[g] & 63 : (uint8_t)((s[g + 4] & 15) | (s[g - 4] >> 6) << 4);
    to->whole_minimum[g] = g < 4 ? s[g + 4] & 63 : (uint8_t)(s[g + 4] >> 4 | (s[g] >> 6) << 4);
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
    memcpy(to->whole_scale, b + 192, 16);
    q6_codes(b, b + 128, to->code);
    return;
  default: break;
  }
  for (int i = 0; i < blocks; i++, b += bytes) {
    uint8_t *code = to->code + QUANT_BLOCK * i;
    to->scale[i] = u16_at(b), to->minimum[i] = u16_at(b + 2);
    switch (dtype) {
    case DT_Q4_0: nibbles(b + 2, code); break;
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

/* Writes four codes at a time, as the bytes of a word: no shift carries a bit from one byte into the next. */
static void put_codes(int bits, const uint8_t *code, int output, uint8_t *to) {
  const uint32_t low = 0x0f0f0f0f, fifth = 0x01010101, upper = 0x03030303;
  uint32_t four[8], more[2] = {0, 0};
  memcpy(four, code, sizeof four);
  for (int t = 0; bits == 8 && t < 8; t++) put_four(to + 64 * t, output, four[t]);
  for (int i = 0; bits < 8 && i < 4; i++) put_four(to + 64 * i, output, (four[i] & low) | (four[i + 4] & low) << 4);
  for (int t = 0; bits == 5 && t < 8; t++) more[0] |= (four[t] >> 4 & fifth) << t;
  for (int t = 0; bits == 6 && t < 8; t++) more[t / 4] |= (four[t] >> 4 & upper) << 2 * (t % 4);
  for (int i = 0; bits < 8 && i < bits - 4; i++) put_four(to + 64 * (4 + i), output, more[i]);
}

static uint8_t get_code(int bits, const uint8_t *from, int k, int output) {
  int four = k / 4, lane = 4 * output + k % 4;
  if (bits == 8) return from[64 * four + lane];
  int low = from[64 * (four % 4) + lane] >> (four < 4 ? 0 : 4) & 15;
  if (bits == 5) return (uint8_t)(low | (from[256 + lane] >> four & 1) << 4);
  if (bits == 6) return (uint8_t)(low | (from[64 * (4 + four / 4) + lane] >> 2 * (four % 4) & 3) << 4);
  return (uint8_t)low;
}

static void put_u16(const uint8_t *line, int output, uint16_t x) { memcpy((uint8_t *)line + 2 * output, &x, 2); }

static float f16_at(const uint8_t *line, int output) {
  float x;
  dt_type_of(DT_F16)->decode(line + 2 * output, 1, &x);
  return x;
}

/* Place of a whole minimum: those of groups 2 i and 2 i + 1 lie side by side. */
static size_t whole_minimum(int group, int output) { return (size_t)(32 * (group / 2) + 2 * output + group % 2); }

static void put_share(const quant_format *f, const share *from, const quant_cell *c, int output) {
  for (int b = 0; b < c->blocks; b++)
    put_codes(f->bits, from->code + QUANT_BLOCK * b, output, (uint8_t *)c->codes + (size_t)b * quant_block_bytes(f));
  for (int g = 0; g < c->groups; g++) {
    if (quant_is_whole(f))
      ((uint8_t *)c->scales)[16 * g + output] = from->whole_scale[g];
    else
      put_u16(c->scales + 32 * g, output, from->scale[g]);
    if (f->scales == QUANT_F16_MIN) put_u16(c->minima + 32 * g, output, from->minimum[g]);
    if (f->scales == QUANT_WHOLE_MIN) ((uint8_t *)c->minima)[whole_minimum(g, output)] = from->whole_minimum[g];
  }
  if (quant_is_whole(f)) put_u16(c->d, output, from->d);
  if (f->scales == QUANT_WHOLE_MIN) put_u16(c->dmin, output, from->dmin);
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
  if (quant_is_whole(f)) {
    float scale = f16_at(c->d, output) * (float)(int8_t)c->scales[16 * g + output];
    if (f->scales == QUANT_WHOLE) return (group_scale){scale, -0.0f};
    return (group_scale){scale, -(f16_at(c->dmin, output) * (float)c->minima[whole_minimum(g, output)])};
  }
  float scale = f16_at(c->scales + 32 * g, output);
  return (group_scale){scale, f->scales == QUANT_F16_MIN ? f16_at(c->minima + 32 * g, output) : -0.0f};
}

void quant_unpack(const quant_format *f, const uint8_t *strip, int k, int output, float *out) {
  for (int at = 0; at < k; at += QUANT_CELL) {
    quant_cell c = quant_cell_at(f, strip, k - at);
    for (int g = 0; g < c.groups; g++) {
      group_scale s = scale_of(f, &c, g, output);
      int first = g * f->group;
      const uint8_t *block = c.codes + (size_t)(first / QUANT_BLOCK) * quant_block_bytes(f);
      for (int i = first; i < first + f->group; i++)
        out[at + i] = s.scale * (float)(get_code(f->bits, block, i % QUANT_BLOCK, output) - f->zero) + s.minimum;
    }
    strip += c.bytes;
  }
}
