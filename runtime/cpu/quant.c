/* Rearranges the codes, scales and minima of a file's blocks for sixteen outputs at a time: see quant.h. */
#include "quant.h"

#include "model/types_decode.h"

#include <stdbool.h>
#include <string.h>

/* ---- the layout -------------------------------------------------------------------------------------------------- */

static void put_four(uint8_t *line, int output, uint32_t four) { memcpy(line + 4 * output, &four, sizeof four); }

/* The number of lower bits of a code, which is also their number of lines; and the number of bits in a plane of upper
 * bits. */
static int lower(int bits) { return bits < 4 ? 2 : 4; }

/* Writes four codes at a time, as the bytes of a word. No shift carries a bit from one byte into the next. */
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

/* Where a byte goes when two groups are interleaved: those of groups 2i and 2i + 1 alternate output by output. */
static size_t side_by_side(int group, int output) { return (size_t)(32 * (group / 2) + 2 * output + group % 2); }

static size_t byte_scale(const quant_format *f, int group, int output) {
  return f->scales == QUANT_HALVES_MIN ? side_by_side(group, output) : (size_t)(16 * group + output);
}

static void put_share(const quant_format *f, const dt_codes *from, const quant_cell *c, int output) {
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
    dt_codes s = {.d = 0};
    dt_take_apart(f->dtype, from, c.blocks, &s);
    put_share(f, &s, &c, output);
    from += dt_row_bytes(f->dtype, (size_t)c.blocks * QUANT_BLOCK);
    strip += c.bytes;
  }
}

/* The scale and minimum of a group: a weight is (code - zero) * scale + minimum. They are computed with the operations
 * of the decoders in types.h, in the same order. A minimum of -0 changes nothing. */
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
