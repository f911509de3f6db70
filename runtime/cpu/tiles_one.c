/* Products of many rows with quantized matrices in AMX tiles, with rows rounded to one digit (defined in quant.h). A
 * tile is sixteen rows by sixteen outputs. The codes of a cell, minus their zero, are unpacked once for all rows. */
#include "product_amx.h"
#include "product_one.h"

/* The scales of the rows of a tile in one cell, gathered from these rows. */
typedef struct {
  float scale[QUANT_BLOCKS][AMX_ROWS], minimum[QUANT_BLOCKS][AMX_ROWS]; /* quant_one's extra, for QUANT_F16_MIN */
} row_scales;

/* A cell, its unpacked weights, and a tile of rows, which are `step` bytes apart. */
typedef struct {
  quant_cell cell;
  const uint8_t *weights;
  const quant_one *row; /* the first row, at this cell */
  const row_scales *scales;
  size_t step;
  int n;
  const uint8_t *ahead; /* where to prefetch, `lines` lines for each four groups */
  int lines;
} tile;

VI void unpack_block(const quant_format *f, const uint8_t *block, uint8_t *to) {
  const __m512i zero = _mm512_set1_epi8((char)f->zero);
#pragma GCC unroll 8
  for (int four = 0; four < 8; four++) {
    __m512i code = quant_code(f, block, four);
    _mm512_store_si512(to + QUANT_LINE * four, f->zero ? _mm512_sub_epi8(code, zero) : code);
  }
}

#define EACH_ROW _Pragma("GCC unroll 16") for (int r = 0; r < rows; r++)

VI void gather_scales(const quant_format *f, const quant_one *row, size_t step, int n, row_scales *to) {
  for (int r = 0; r < n; r++, row = (const quant_one *)((const char *)row + step))
    for (int b = 0; b < QUANT_BLOCKS; b++) {
      to->scale[b][r] = row->scale[b];
      if (f->scales == QUANT_F16_MIN) memcpy(&to->minimum[b][r], &row->extra[b], sizeof(float));
    }
}

/* Adds block b to t. first and second hold the sums of its group or groups, [16][16] each. */
VI void finish_block(const int rows, const quant_format *f, const tile *w, int b, const int32_t *first,
                     const int32_t *second, v16 t[AMX_ROWS]) {
  const float *sx = w->scales->scale[b];
  if (!quant_is_whole(f)) {
    v16 scale = quant_scale(f, &w->cell, b);
    EACH_ROW {
      v16 sum = i_to_float(_mm512_load_si512(first + QUANT_OUTPUTS * r));
      t[r] = v_fma(sum, v_mul(scale, v_set1(sx[r])), t[r]);
    }
    if (f->scales != QUANT_F16_MIN) return;
    v16 minimum = quant_minimum(&w->cell, b);
    EACH_ROW t[r] = v_fma(minimum, v_set1(w->scales->minimum[b][r]), t[r]);
    return;
  }
  const bool both = f->group != QUANT_BLOCK;
  v16 scale = quant_scale(f, &w->cell, both ? 2 * b : b), other = both ? quant_scale(f, &w->cell, 2 * b + 1) : scale;
  EACH_ROW {
    v16 u = v_mul(i_to_float(_mm512_load_si512(first + QUANT_OUTPUTS * r)), scale);
    if (both) u = v_fma(i_to_float(_mm512_load_si512(second + QUANT_OUTPUTS * r)), other, u);
    t[r] = v_fma(u, v_set1(sx[r]), t[r]);
  }
}

/* Starts the products of group g, whose sums go to tile `sums`. The other two tiles hold the operands. */
#define START(g, sums, rows_tile, weights_tile)                                                                        \
  do {                                                                                                                 \
    const int8_t *digits_ = w->row->digit + f->group * (g);                                                            \
    const uint8_t *weights_ = w->weights + QUANT_OUTPUTS * f->group * (g);                                             \
    if (f->zero)                                                                                                       \
      AMX_MULTIPLY(_tile_dpbssd, sums, rows_tile, weights_tile, digits_, w->step, weights_);                           \
    else                                                                                                               \
      AMX_MULTIPLY(_tile_dpbsud, sums, rows_tile, weights_tile, digits_, w->step, weights_);                           \
  } while (0)

/* Takes four groups at a time, each with its own tile of sums: first the products, which have a long latency, then the
 * ends of these groups, which the processor overlaps with the next products. */
VI void add_groups(const int rows, const quant_format *f, const tile *w, v16 t[AMX_ROWS]) {
  int32_t part[4][AMX_ROWS * QUANT_OUTPUTS] __attribute__((aligned(64)));
  const int groups = w->cell.groups, per_block = QUANT_BLOCK / f->group;
  const uint8_t *ahead = w->ahead;
  for (int g = 0; g < groups; g += 4) {
    const int left = groups - g;
    for (int i = 0; i < w->lines; i++, ahead += QUANT_LINE) __builtin_prefetch(ahead, 0, 3);
    START(g, 0, 4, 6);
    if (left > 1) START(g + 1, 1, 5, 7);
    if (left > 2) START(g + 2, 2, 4, 6);
    if (left > 3) START(g + 3, 3, 5, 7);
    _tile_stored(0, part[0], QUANT_LINE);
    if (left > 1) _tile_stored(1, part[1], QUANT_LINE);
    if (left > 2) _tile_stored(2, part[2], QUANT_LINE);
    if (left > 3) _tile_stored(3, part[3], QUANT_LINE);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i += per_block)
      if (left > i) finish_block(rows, f, w, (g + i) / per_block, part[i], part[i + per_block - 1], t);
  }
}

/* Adds one cell to the sums of a tile of at most `rows` rows. */
VI void add_cell(const int rows, const quant_format *f, one_finer *add_finer, const tile *w, float *sums, size_t ld) {
  v16 t[AMX_ROWS];
  EACH_ROW t[r] = one_begin_cell(f, sums + (size_t)(r < w->n ? r : 0) * ld);
  add_groups(rows, f, w, t);
  const quant_one *row = w->row;
  const quant_factors of = quant_factors_of(f, &w->cell);
  EACH_ROW {
    if (r >= w->n) break;
    if (row->fine) t[r] = add_finer(&w->cell, row, t[r]);
    one_end_cell(f, &of, row, t[r], sums + (size_t)r * ld);
    row = (const quant_one *)((const char *)row + w->step);
  }
}

enum { MOST_TILES = 4 }; /* tiles of rows at once: their scales stay in the L1 cache */

/* Computes rows 0..n-1; n is at most MOST_TILES * AMX_ROWS. */
VI void multiply(const quant_format *f, one_finer *add_finer, const cpu_matrix *m, int first, int count, const char *x,
                 size_t step, int n, float *sums, size_t ld) {
  const int tiles = (n + AMX_ROWS - 1) / AMX_ROWS, height = (n + tiles - 1) / tiles, k = m->k;
  const size_t strip_bytes = quant_strip_bytes(f, k);
  const uint8_t *strips = (const uint8_t *)m->data + (size_t)first * QUANT_STRIPS * strip_bytes;
  uint8_t weights[QUANT_CELL * QUANT_OUTPUTS] __attribute__((aligned(64)));
  row_scales scales[MOST_TILES] = {0};
  const int turns = QUANT_CELL / f->group / 4, shares = tiles * turns;
  const int lines = ((int)(quant_layout_of(f, QUANT_CELL).bytes / QUANT_LINE) + shares - 1) / shares;
  amx_shape(height, f->group);
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int at = 0; at < k; at += QUANT_CELL) { /* all strips use a cell while its digits are in the L1 cache */
    quant_cell c = {.bytes = 0};
    for (int i = 0, from = 0; i < tiles; i++, from += height)
      gather_scales(f, (const quant_one *)(x + (size_t)from * step), step, n - from < height ? n - from : height,
                    &scales[i]);
    for (int s = 0; s < QUANT_STRIPS * count; s++) {
      c = quant_cell_at(f, strips + (size_t)s * strip_bytes, k - at);
      /* The strip's next cell or, after its last one, the first cell of the next panels. */
      const uint8_t *next =
          c.codes + (k - at > QUANT_CELL ? c.bytes : (QUANT_STRIPS * count - 1) * strip_bytes + c.bytes);
      for (int b = 0; b < c.blocks; b++)
        unpack_block(f, c.codes + (size_t)b * quant_block_bytes(f), weights + QUANT_OUTPUTS * QUANT_BLOCK * b);
      for (int i = 0, from = 0; i < tiles; i++, from += height) {
        const quant_one *row = (const quant_one *)(x + (size_t)from * step);
        const tile w = {c, weights, row, &scales[i], step, n - from < height ? n - from : height, next, lines};
        next += lines * turns * QUANT_LINE;
        float *to = sums + (size_t)from * ld + QUANT_OUTPUTS * s;
        if (height > AMX_ROWS / 2)
          add_cell(AMX_ROWS, f, add_finer, &w, to, ld);
        else
          add_cell(AMX_ROWS / 2, f, add_finer, &w, to, ld);
      }
    }
    strips += c.bytes;
    x += sizeof(quant_one);
  }
  _tile_release();
}

#define DEFINE(name, ...)                                                                                              \
  static const quant_format name = {__VA_ARGS__};                                                                      \
  ONE_DEFINE_FINER(name)                                                                                               \
  void V(tiles_one_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld) {                                                                                \
    const int most = MOST_TILES * AMX_ROWS;                                                                            \
    for (int from = 0; from < n; from += most)                                                                         \
      multiply(&name, name##_finer, m, first, count, x + (size_t)from * step, step, n - from < most ? n - from : most, \
               sums + (size_t)from * ld, ld);                                                                          \
  }
QUANT_FORMATS(DEFINE)
