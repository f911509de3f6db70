/* Products of many rows with quantized matrices in AMX tiles, with rows rounded to two digits (defined in quant.h). A
 * tile is sixteen rows by sixteen outputs.
 *
 * The codes of a cell are unpacked once for all rows. For each group, (code - zero) << shift comes first and code -
 * zero second. This matches the high and low digits of a row, so that a single product of tiles adds up both digits.
 * Codes of 8 bits, and values of a table, leave no room for a shift. They take two products, whose sums are combined
 * afterwards. */
#include "product_amx.h"
#include "product_two.h"

/* Whether shifted codes would not fit into bytes, so that the two digits take two products. */
VI bool is_joined(const quant_format *f) { return f->zero << f->shift > 128; }

/* ---- weights ----------------------------------------------------------------------------------------------------- */

VI void unpack_block(const quant_format *f, const uint8_t *block, uint8_t *to) {
  const int fours = f->group / 4;
  const __m512i zero = _mm512_set1_epi8((char)f->zero), shifted_zero = _mm512_set1_epi8((char)(f->zero << f->shift));
#pragma GCC unroll 8
  for (int t = 0; t < 8; t++) {
    uint8_t *at = to + QUANT_LINE * (t / fours * 2 * fours + t % fours);
    __m512i code = quant_code(f, block, t), shifted = _mm512_slli_epi16(code, (unsigned)f->shift);
    _mm512_store_si512(at, _mm512_sub_epi8(shifted, shifted_zero));
    _mm512_store_si512(at + QUANT_LINE * fours, _mm512_sub_epi8(code, zero));
  }
}

/* For two products: unpacks the codes themselves. Formats of 8 bits do not need this. */
VI void unpack_codes(const quant_format *f, const uint8_t *block, uint8_t *to) {
#pragma GCC unroll 8
  for (int t = 0; t < 8; t++) _mm512_store_si512(to + QUANT_LINE * t, quant_code(f, block, t));
}

/* The weights of a cell in the form that tiles take: unpacked into `to`, or as they are stored. */
VI const uint8_t *tile_weights(const quant_format *f, const quant_cell *c, uint8_t *to) {
  if (f->bits == 8) return c->codes;
  for (int b = 0; b < c->blocks; b++) {
    const uint8_t *block = c->codes + (size_t)b * quant_block_bytes(f);
    if (is_joined(f))
      unpack_codes(f, block, to + QUANT_OUTPUTS * QUANT_BLOCK * b);
    else
      unpack_block(f, block, to + 2 * QUANT_OUTPUTS * QUANT_BLOCK * b);
  }
  return to;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A cell, its unpacked weights, and a tile of rows, which are `step` bytes apart. */
typedef struct {
  quant_cell cell;
  const uint8_t *weights;
  const quant_two *row; /* the first row, at this cell */
  size_t step;
  int n;
} tile;

VI const quant_two *row_of(const tile *t, int r) {
  return (const quant_two *)((const char *)t->row + (size_t)(r < t->n ? r : 0) * t->step);
}

/* Adds group g to t. `sums`, and `low` in the case of two products, are [16][16]. */
VI void finish_group(const quant_format *f, const tile *w, int g, const int32_t *sums, const int32_t *low,
                     v16 t[AMX_ROWS]) {
  v16 scale = quant_scale(f, &w->cell, g), minimum = f->scales == QUANT_F16_MIN ? quant_minimum(&w->cell, g) : scale;
#pragma GCC unroll 16
  for (int r = 0; r < AMX_ROWS; r++) {
    __m512i sum = _mm512_load_si512(sums + 16 * r);
    const int32_t *extra = &row_of(w, r)->extra[g];
    if (is_joined(f)) {
      sum = _mm512_add_epi32(_mm512_slli_epi32(sum, (unsigned)f->shift), _mm512_load_si512(low + 16 * r));
      sum = _mm512_add_epi32(sum, _mm512_set1_epi32(*extra));
    }
    t[r] = v_fma(i_to_float(sum), scale, t[r]);
    if (f->scales == QUANT_F16_MIN) t[r] = v_fma(quant_float_at(extra), minimum, t[r]);
  }
}

/* A pipeline over groups. The intrinsics need literal tile numbers, so the code of four turns is written out. Turn g
 * multiplies group g, turn g + 1 stores its sums, and turn g + 3 adds them to t, when the store has completed:
 *
 *   turn     multiplies: sums, rows, weights     stores sums of g - 1     finishes sums of g - 3
 *   0        0         4     6                   3                        1
 *   1        1         5     7                   0                        2
 *   2        2         4     6                   1                        3
 *   3        3         5     7                   2                        0 */
#define START(g, sums, rows, weights_tile)                                                                             \
  if ((g) < groups) {                                                                                                  \
    const int8_t *digits_ = w->row->digits + 2 * f->group * (g);                                                       \
    const uint8_t *weights_ = w->weights + 2 * QUANT_OUTPUTS * f->group * (g);                                         \
    if (f->zero)                                                                                                       \
      AMX_MULTIPLY(_tile_dpbssd, sums, rows, weights_tile, digits_, w->step, weights_);                                \
    else                                                                                                               \
      AMX_MULTIPLY(_tile_dpbsud, sums, rows, weights_tile, digits_, w->step, weights_);                                \
  }
#define STORE(g, sums)                                                                                                 \
  if ((g) >= 0 && (g) < groups) _tile_stored(sums, part[sums], 64);
#define FINISH(g, sums)                                                                                                \
  if ((g) >= 0 && (g) < groups) finish_group(f, w, g, part[sums], NULL, t);

#define TURN(g, sums, rows, weights_tile, stored, finished)                                                            \
  do {                                                                                                                 \
    START(g, sums, rows, weights_tile)                                                                                 \
    STORE((g)-1, stored)                                                                                               \
    FINISH((g)-3, finished)                                                                                            \
  } while (0)

VI void shifted_groups(const quant_format *f, const tile *w, v16 t[AMX_ROWS]) {
  int32_t part[4][AMX_ROWS * 16] __attribute__((aligned(64)));
  const int groups = w->cell.groups;
  for (int g = 0; g < groups + 3; g += 4) {
    TURN(g, 0, 4, 6, 3, 1);
    TURN(g + 1, 1, 5, 7, 0, 2);
    TURN(g + 2, 2, 4, 6, 1, 3);
    TURN(g + 3, 3, 5, 7, 2, 0);
  }
}

/* The same with two tiles of sums for each group: one for the high digits and one for the low digits. */
#define TURN_BOTH(g, high, low, stored_high, stored_low)                                                               \
  do {                                                                                                                 \
    if ((g) < groups) {                                                                                                \
      const int8_t *at = w->row->digits + 2 * f->group * (g);                                                          \
      AMX_MULTIPLY(_tile_dpbsud, high, 4, 6, at, w->step, w->weights + QUANT_OUTPUTS * f->group * (g));                \
      AMX_MULTIPLY(_tile_dpbsud, low, 5, 7, at + f->group, w->step, w->weights + QUANT_OUTPUTS * f->group * (g));      \
    }                                                                                                                  \
    if ((g) >= 2 && (g)-2 < groups) finish_group(f, w, (g)-2, part[high], part[low], t);                               \
    if ((g) >= 1 && (g)-1 < groups) {                                                                                  \
      _tile_stored(stored_high, part[stored_high], 64);                                                                \
      _tile_stored(stored_low, part[stored_low], 64);                                                                  \
    }                                                                                                                  \
  } while (0)

VI void joined_groups(const quant_format *f, const tile *w, v16 t[AMX_ROWS]) {
  int32_t part[4][AMX_ROWS * 16] __attribute__((aligned(64)));
  const int groups = w->cell.groups;
  for (int g = 0; g < groups + 2; g += 2) {
    TURN_BOTH(g, 0, 1, 2, 3);
    TURN_BOTH(g + 1, 2, 3, 0, 1);
  }
}

/* Adds one cell to the sums of a tile of rows. */
VI void add_cell(const quant_format *f, const tile *w, float *sums, size_t ld) {
  v16 t[AMX_ROWS];
#pragma GCC unroll 16
  for (int r = 0; r < AMX_ROWS; r++) t[r] = v_set1(0.0f);
  if (is_joined(f))
    joined_groups(f, w, t);
  else
    shifted_groups(f, w, t);
  const quant_factors of = quant_factors_of(f, &w->cell);
#pragma GCC unroll 16
  for (int r = 0; r < AMX_ROWS; r++) {
    if (r >= w->n) break;
    float *acc = sums + (size_t)r * ld;
    v_store(acc, two_end_cell(f, &of, v_load(acc), t[r], row_of(w, r)));
  }
}

VI void multiply(const quant_format *f, const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,
                 float *sums, size_t ld) {
  const int tiles = (n + AMX_ROWS - 1) / AMX_ROWS, height = (n + tiles - 1) / tiles, k = m->k;
  const size_t strip_bytes = quant_strip_bytes(f, k);
  const uint8_t *strips = (const uint8_t *)m->data + (size_t)first * 2 * strip_bytes;
  uint8_t weights[QUANT_CELL * QUANT_OUTPUTS * 2] __attribute__((aligned(64)));
  amx_shape(height, is_joined(f) ? f->group : 2 * f->group);
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int at = 0; at < k; at += QUANT_CELL) { /* all strips use a cell while its digits are in the L1 cache */
    quant_cell c = {.bytes = 0};
    for (int s = 0; s < 2 * count; s++) {
      c = quant_cell_at(f, strips + (size_t)s * strip_bytes, k - at);
      for (size_t i = 0; i < c.bytes; i += QUANT_LINE) __builtin_prefetch(c.codes + c.bytes + i, 0, 3);
      const uint8_t *unpacked = tile_weights(f, &c, weights);
      for (int from = 0; from < n; from += height) {
        const tile w = {c, unpacked, (const quant_two *)(x + (size_t)from * step), step,
                        n - from < height ? n - from : height};
        add_cell(f, &w, sums + (size_t)from * ld + QUANT_OUTPUTS * s, ld);
      }
    }
    strips += c.bytes;
    x += sizeof(quant_two);
  }
  _tile_release();
}

#define DEFINE(name, ...)                                                                                              \
  static const quant_format name = {__VA_ARGS__};                                                                      \
  void V(tiles_two_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld) {                                                                                \
    multiply(&name, m, first, count, x, step, n, sums, ld);                                                            \
  }
QUANT_FORMATS(DEFINE)
