/* Products of many rows with quantized matrices in AMX tiles, sixteen rows by sixteen outputs at a time: see quant.h for what
 * is computed. The codes of a cell are unpacked once for all rows. Scales that are whole numbers are multiplied in then, and the
 * products, which fill more than a byte, are two digits as the rows' numbers are: so sums go on through the whole cell before
 * they leave their tiles, and that costs more than to multiply. Scales in f16 end a sum at every group. */
#include "quant_tiles.h"

#include <stdbool.h>

enum { TILE = 16, DEPTH = 64 /* numbers of a row in a tile, with whole scales */ };

typedef struct {
  uint8_t palette, start, reserved[14];
  uint16_t columns[16]; /* bytes */
  uint8_t rows[16];
} tile_shapes;

/* Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 weights of `depth` numbers. */
static void shape_tiles(int rows, int depth) {
  tile_shapes c = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    c.rows[i] = (uint8_t)(i < 6 ? rows : depth / 4);
    c.columns[i] = (uint16_t)(i == 4 || i == 5 ? depth : QUANT_LINE);
  }
  _tile_loadconfig(&c);
}

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* A cell's weights, four numbers of each output to a line. */
typedef struct {
  uint8_t low[QUANT_CELL * QUANT_OUTPUTS], high[QUANT_CELL * QUANT_OUTPUTS];
} unpacked;

VI __m512i code_at(const quant_format *f, const uint8_t *block, const int four) {
  if (f->bits == 8) return _mm512_loadu_si512(block + QUANT_LINE * four);
  __m512i line = _mm512_loadu_si512(block + QUANT_LINE * (four % 4)), low = _mm512_set1_epi8(15);
  __m512i code = _mm512_and_si512(four < 4 ? line : _mm512_srli_epi16(line, 4), low);
  if (f->bits == 4) return code;
  __mmask64 set =
      _mm512_test_epi8_mask(_mm512_loadu_si512(block + QUANT_LINE * 4), _mm512_set1_epi8((char)(1 << four)));
  return _mm512_mask_add_epi8(code, set, code, _mm512_set1_epi8(16));
}

/* The scales of a group as pairs of sixteen bits. */
VI __m512i pairs(__m512i scale) {
  return _mm512_or_si512(_mm512_slli_epi32(scale, 16), _mm512_and_si512(scale, _mm512_set1_epi32(0xffff)));
}

/* code * scale = (high << 3) + low, both by halves of the scale: neither product carries from one byte to the next. */
VI void scale_unsigned(__m512i code, __m512i scale, uint8_t *low, uint8_t *high) {
  _mm512_storeu_si512(low, _mm512_mullo_epi16(code, _mm512_and_si512(scale, _mm512_set1_epi16(7))));
  _mm512_storeu_si512(high, _mm512_mullo_epi16(code, _mm512_srli_epi16(scale, 3)));
}

/* code * scale = (high << 7) + low, both signed */
VI void scale_signed(__m512i code, __m512i scale, uint8_t *low, uint8_t *high) {
  const __m512i seven = _mm512_set1_epi16(127), byte = _mm512_set1_epi16(255);
  __m512i even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(code, 8), 8), scale);
  __m512i odd = _mm512_mullo_epi16(_mm512_srai_epi16(code, 8), scale);
  _mm512_storeu_si512(
      low, _mm512_or_si512(_mm512_and_si512(even, seven), _mm512_slli_epi16(_mm512_and_si512(odd, seven), 8)));
  _mm512_storeu_si512(high, _mm512_or_si512(_mm512_and_si512(_mm512_srai_epi16(even, 7), byte),
                                            _mm512_slli_epi16(_mm512_srai_epi16(odd, 7), 8)));
}

VI int high_shift(const quant_format *f) { return f->zero ? 7 : 3; }

VI void unpack_block(const quant_format *f, const quant_cell *c, int b, unpacked *to) {
  const uint8_t *block = c->codes + (size_t)b * quant_block_bytes(f);
  const __m512i zero = _mm512_set1_epi8((char)f->zero);
#pragma GCC unroll 8
  for (int t = 0; t < 8; t++) {
    size_t at = (size_t)QUANT_LINE * (size_t)(8 * b + t);
    __m512i code = _mm512_sub_epi8(code_at(f, block, t), zero);
    if (!quant_is_whole(f)) {
      _mm512_storeu_si512(to->low + at, code);
      continue;
    }
    int g = (b * QUANT_BLOCK + 4 * t) / f->group;
    __m512i scale = pairs(i_load_i8((const int8_t *)c->scales + QUANT_OUTPUTS * g));
    if (f->zero)
      scale_signed(code, scale, to->low + at, to->high + at);
    else
      scale_unsigned(code, scale, to->low + at, to->high + at);
  }
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

/* A cell, its unpacked weights, and a tile of rows, which lie `step` bytes apart; those before `skip` are another tile's. */
typedef struct {
  quant_cell cell;
  const unpacked *weights;
  const quant_x *x;
  size_t step;
  int n, skip;
  unsigned wide; /* of any row */
  float *sums;
  size_t ld;
} tile;

VI const quant_x *row_of(const tile *w, int r) { return (const quant_x *)((const char *)w->x + (size_t)r * w->step); }

/* sum += rows * weights; numbers of tiles are literal. Weights that are below zero are signed. */
#define MULTIPLY(sum, rows, weights)                                                                                   \
  do {                                                                                                                 \
    if (f->zero)                                                                                                       \
      _tile_dpbssd(sum, rows, weights);                                                                                \
    else                                                                                                               \
      _tile_dpbsud(sum, rows, weights);                                                                                \
  } while (0)

/* The cell's sums of both digits of weights with the low one of x in tiles 0 and 1, with the high one in 2 and 3. */
VI void whole_cell(const quant_format *f, const tile *w) {
  int32_t part[4][TILE * TILE] __attribute__((aligned(64)));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int at = 0; at < QUANT_CELL; at += DEPTH) {
    _tile_loadd(4, w->x->low + at, w->step);
    _tile_loadd(6, w->weights->low + QUANT_OUTPUTS * at, QUANT_LINE);
    _tile_loadd(7, w->weights->high + QUANT_OUTPUTS * at, QUANT_LINE);
    MULTIPLY(0, 4, 6);
    MULTIPLY(1, 4, 7);
    if (!(w->wide >> at / QUANT_BLOCK & 3)) continue;
    _tile_loadd(5, w->x->high + at, w->step);
    MULTIPLY(2, 5, 6);
    MULTIPLY(3, 5, 7);
  }
  _tile_stored(0, part[0], QUANT_LINE);
  _tile_stored(1, part[1], QUANT_LINE);
  if (w->wide) {
    _tile_stored(2, part[2], QUANT_LINE);
    _tile_stored(3, part[3], QUANT_LINE);
  }
#pragma GCC unroll 4
  for (int r = w->skip; r < w->n; r++) {
    const int at = TILE * r, shift = high_shift(f);
    i16 sum = i_add(i_left(_mm512_load_si512(part[1] + at), shift), _mm512_load_si512(part[0] + at));
    if (w->wide) {
      i16 high = i_add(i_left(_mm512_load_si512(part[3] + at), shift), _mm512_load_si512(part[2] + at));
      sum = i_add(sum, i_left(high, 8));
    }
    const quant_x *x = row_of(w, r);
    float *acc = w->sums + (size_t)r * w->ld;
    v_store(acc, quant_add_cell(f, &w->cell, v_load(acc), i_to_float(sum), x->scale, x->extra));
  }
}

/* A group's sums in tile `low` are stored and finished; then so are those of the high digits. */
VI void finish_group(const quant_format *f, const tile *w, int g, const int32_t *low, const int32_t *high,
                     v16 t[TILE]) {
  const bool wide = w->wide >> g & 1;
  v16 scale = v_load_f16((const uint16_t *)w->cell.scales + QUANT_OUTPUTS * g);
  v16 minimum = f->scales == QUANT_F16_MIN ? v_load_f16((const uint16_t *)w->cell.minima + QUANT_OUTPUTS * g) : scale;
#pragma GCC unroll 16
  for (int r = 0; r < TILE; r++) {
    i16 sum = _mm512_load_si512(low + TILE * r);
    if (wide) sum = i_add(sum, i_left(_mm512_load_si512(high + TILE * r), 8));
    t[r] = v_fma(i_to_float(sum), scale, t[r]);
    if (f->scales == QUANT_F16_MIN) {
      int32_t bits = row_of(w, r < w->n ? r : 0)->extra[g];
      t[r] = v_fma(_mm512_castsi512_ps(i_set1(bits)), minimum, t[r]);
    }
  }
}

/* A group begins in one pair of tiles while the one before it leaves the other. */
#define GROUP(g, low_sum, high_sum)                                                                                    \
  do {                                                                                                                 \
    if ((g) >= w->cell.groups) break;                                                                                  \
    _tile_loadd(4, w->x->low + QUANT_BLOCK * (g), w->step);                                                            \
    _tile_loadd(6, w->weights->low + QUANT_OUTPUTS * QUANT_BLOCK * (g), QUANT_LINE);                                   \
    _tile_zero(low_sum);                                                                                               \
    MULTIPLY(low_sum, 4, 6);                                                                                           \
    if (w->wide >> (g)&1) {                                                                                            \
      _tile_loadd(5, w->x->high + QUANT_BLOCK * (g), w->step);                                                         \
      _tile_zero(high_sum);                                                                                            \
      MULTIPLY(high_sum, 5, 6);                                                                                        \
      _tile_stored(high_sum, part[high_sum], QUANT_LINE);                                                              \
    }                                                                                                                  \
    _tile_stored(low_sum, part[low_sum], QUANT_LINE);                                                                  \
  } while (0)

VI void f16_cell(const quant_format *f, const tile *w) {
  int32_t part[4][TILE * TILE] __attribute__((aligned(64)));
  v16 t[TILE];
#pragma GCC unroll 16
  for (int r = 0; r < TILE; r++) t[r] = v_set1(0.0f);
  GROUP(0, 0, 1);
  for (int g = 0; g < w->cell.groups; g += 2) {
    GROUP(g + 1, 2, 3);
    finish_group(f, w, g, part[0], part[1], t);
    GROUP(g + 2, 0, 1);
    if (g + 1 < w->cell.groups) finish_group(f, w, g + 1, part[2], part[3], t);
  }
#pragma GCC unroll 16
  for (int r = 0; r < TILE; r++) {
    if (r < w->skip || r >= w->n) continue;
    const quant_x *x = row_of(w, r);
    float *acc = w->sums + (size_t)r * w->ld;
    v_store(acc, quant_add_cell(f, &w->cell, v_load(acc), t[r], x->scale, x->extra));
  }
}

VI void multiply(const quant_format *f, const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,
                 float *sums, size_t ld) {
  const int tiles = (n + TILE - 1) / TILE, height = (n + tiles - 1) / tiles;
  const size_t panel_bytes = quant_panel_bytes(f, m->k);
  const uint8_t *panels = (const uint8_t *)m->data + (size_t)first * panel_bytes;
  unpacked weights __attribute__((aligned(64)));
  shape_tiles(height, quant_is_whole(f) ? DEPTH : QUANT_BLOCK);
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int at = 0; at < m->k; at += QUANT_CELL) { /* all strips of a cell, while its digits are in the L1 cache */
    tile w = {.weights = &weights, .step = step, .n = height, .ld = ld};
    for (int s = 0; s < 2 * count; s++) {
      w.cell = quant_cell_at(f, panels + (size_t)(s / 2) * panel_bytes, m->k - at, s % 2);
      for (size_t i = 0; i < w.cell.bytes; i += QUANT_LINE) __builtin_prefetch(w.cell.codes + w.cell.bytes + i, 0, 3);
      for (int b = 0; b < w.cell.blocks; b++) unpack_block(f, &w.cell, b, &weights);
      for (int from = 0; from < n; from += height) {
        int begin = from + height < n ? from : n - height; /* the last tile reaches back */
        w.skip = from - begin;
        w.x = (const quant_x *)(x + (size_t)begin * step) + at / QUANT_CELL;
        w.sums = sums + (size_t)begin * ld + QUANT_OUTPUTS * s;
        w.wide = 0;
        for (int r = w.skip; r < height; r++) w.wide |= row_of(&w, r)->wide;
        if (quant_is_whole(f))
          whole_cell(f, &w);
        else
          f16_cell(f, &w);
      }
    }
    panels += w.cell.bytes;
  }
  _tile_release();
}

#define DEFINE(name, ...)                                                                                              \
  static const quant_format name = {__VA_ARGS__};                                                                      \
  void V(quant_tiles_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,             \
                             float *sums, size_t ld) {                                                                 \
    multiply(&name, m, first, count, x, step, n, sums, ld);                                                            \
  }
QUANT_FORMATS(DEFINE)
