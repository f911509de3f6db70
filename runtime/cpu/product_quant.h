/* Shared by all products with quantized matrices, whether x has one digit or two, and whether they use vectors, AMX
 * tiles or SMMLA: how vectors of codes and scales are loaded, and the loop over a matrix. */
#ifndef DT_CPU_PRODUCT_QUANT_H
#define DT_CPU_PRODUCT_QUANT_H

#include "format.h"
#include "quant.h"
#include "simd.h"

#include <stdbool.h>

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Whether all codes are below 128. Where dot products are signed, other codes are stored minus 128, which is the zero
 * of their formats. */
VI bool quant_is_small(const quant_format *f) { return f->bits < 8 && f->values != QUANT_IQ4; }

static const uint8_t quant_signed_iq4[16] = {129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113};

/* Unpacks four number `four` (0..7) of a block, for sixteen outputs. */
VI i16 quant_code(const quant_format *f, const uint8_t *block, const int four) {
  if (f->bits == 8) {
    i16 code = i_load(block + QUANT_LINE * four);
    return SIMD_SIGNED ? i_xor(code, i_set1((int32_t)0x80808080)) : code;
  }
  const int lines = f->bits < 4 ? 2 : 4, upper = f->bits - lines; /* numbers of lower and upper bits */
  i16 line = i_load(block + QUANT_LINE * (four % lines));
  i16 low = i_and(four < lines ? line : i_right(line, four / lines * lines), lines == 2 ? 0x03030303 : 0x0f0f0f0f);
  if (SIMD_SIGNED && f->values == QUANT_IQ4) return i_look_up(quant_signed_iq4, low);
  if (f->values != QUANT_ITSELF) return i_look_up(quant_table(f), low);
  if (upper == 0) return low;
  i16 plane = i_load(block + QUANT_LINE * (upper == 1 ? lines : lines + four / 4));
  const int from = upper == 1 ? four : four % 4 * 2; /* where the upper bits are, which move above the lower ones */
  i16 high = from < lines ? i_left(plane, lines - from) : i_right(plane, from - lines);
  return i_or(low, i_and(high, (upper == 1 ? 0x01010101 : 0x03030303) << lines));
}

/* Unpacks the codes of a strip's cell: a line for each four inputs. */
VI void quant_unpack_cell(const quant_format *f, const uint8_t *weights, int left, uint8_t *codes) {
  const quant_cell c = quant_cell_at(f, weights, left);
  for (int b = 0; b < c.blocks; b++) {
#pragma GCC unroll 8
    for (int four = 0; four < 8; four++, codes += QUANT_LINE)
      i_store((int32_t *)(void *)codes, quant_code(f, c.codes + (size_t)b * quant_block_bytes(f), four));
  }
}

/* What the integer sum of a group begins with, taken from a row's `extra`: -zero * (sum of q), or 0 if the codes are
 * stored minus their zero. */
VI int32_t quant_extra(const quant_format *f, const int32_t *extra) {
  return f->zero && !(SIMD_SIGNED && !quant_is_small(f)) ? *extra : 0;
}

VI v16 quant_scale(const quant_format *f, const quant_cell *c, int group) {
  const size_t at = (size_t)QUANT_OUTPUTS * (size_t)group;
  switch (f->scales) {
  case QUANT_F16:
  case QUANT_F16_MIN: return v_load_f16((const uint16_t *)c->scales + at);
  case QUANT_E8M0: return v_load_half_power(c->scales + at);
  case QUANT_HALVES_MIN:
    return i_to_float(i_and(i_right(i_load_pairs(c->scales + at / 32 * 32), group % 2 * 16), 0x0f));
  default: return v_load_i8((const int8_t *)c->scales + at);
  }
}

VI v16 quant_minimum(const quant_cell *c, int group) {
  return v_load_f16((const uint16_t *)c->minima + (size_t)QUANT_OUTPUTS * (size_t)group);
}

/* These three compute isum * scale in one step, if a block has one integer scale. The integer sum begins with the bits
 * of the float 1.5 * 2^23. The result's bits are therefore the float 1.5 * 2^23 + isum, and adding `less`, -1.5 * 2^23
 * * scale, removes the first term. All of this is exact. */
VI int32_t quant_begin(const quant_format *f) { return quant_is_whole(f) && f->group == QUANT_BLOCK ? 0x4b400000 : 0; }

VI v16 quant_less(v16 scale) { return v_mul(scale, v_set1(-0x1.8p23f)); }

VI v16 quant_scaled(i16 sum, v16 scale, v16 less) { return v_fma(i_as_float(sum), scale, less); }

VI v16 quant_f16(const uint8_t *line) { return v_load_f16((const uint16_t *)line); }

/* The factors at the end of a cell with integer scales, the same for all rows: d and, with integer minima, dmin and the
 * minima of groups 2i and 2i + 1, 16 bits each. */
typedef struct {
  v16 d, dmin;
  i16 minima[QUANT_BLOCKS];
} quant_factors;

/* The number of pairs of groups in a cell. */
VI int quant_pairs(const quant_format *f) { return QUANT_CELL / f->group / 2; }

VI quant_factors quant_factors_of(const quant_format *f, const quant_cell *c) {
  quant_factors of = {.d = v_set1(0.0f)};
  if (quant_is_whole(f)) of.d = quant_f16(c->d);
  if (!quant_has_whole_minima(f)) return of;
  const bool halves = f->scales == QUANT_HALVES_MIN;
  of.dmin = quant_f16(c->dmin);
#pragma GCC unroll 8
  for (int i = 0; i < quant_pairs(f); i++) {
    of.minima[i] =
        i < c->groups / 2 ? i_load_pairs((halves ? c->scales : c->minima) + 2 * QUANT_OUTPUTS * i) : i_set1(0);
    if (halves) of.minima[i] = i_and(i_right(of.minima[i], 4), 0x000f000f);
  }
  return of;
}

/* The sum over a cell's groups of an integer minimum times a 16-bit sum. Each element of `pairs` has two such sums. */
VI v16 quant_whole_minima(const quant_format *f, const quant_factors *of, const int32_t *pairs) {
  i16 sum = i_set1(0);
#pragma GCC unroll 8
  for (int i = 0; i < quant_pairs(f); i++) sum = i_dot2(sum, of->minima[i], pairs[i]);
  return i_to_float(sum);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

VI int32_t quant_bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

VI v16 quant_float_at(const int32_t *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return v_set1(x);
}

/* Packs two 16-bit sums into one word, the first in the lower half. */
VI int32_t quant_pair(int32_t first, int32_t second) {
  return (int32_t)((uint32_t)first & 0xffff) | (int32_t)((uint32_t)second << 16);
}

/* Sets *largest to the largest |x| of n numbers, n a multiple of 16. Returns false if a number is not finite. */
VI bool quant_largest(const float *x, int n, float *largest) {
  v16 most = v_set1(0.0f), zero = v_set1(0.0f), all = zero;
  for (int i = 0; i < n; i += 16) {
    v16 v = v_load(x + i);
    most = v_max(v_abs(v), most);
    all = v_fma(v, zero, all); /* becomes NaN if any number is not finite */
  }
  *largest = v_hmax(most);
  return !v_nan_mask(all);
}

/* The factor that maps numbers up to `most` to integers up to `limit`; 0 if all numbers are 0. */
VI float quant_inverse(float most, int limit) { return most > 0.0f ? fminf((float)limit / most, 0x1p126f) : 0.0f; }

/* ---- the loop over a matrix -------------------------------------------------------------------------------------- */

/* The work of a kernel: some cells of strips, which are `apart` bytes from each other, and rows, which are `step` bytes
 * apart. */
typedef struct {
  const uint8_t *weights;
  size_t apart;
  int cells, left;      /* left: how many inputs of the row remain from the first cell on */
  const uint8_t *ahead; /* where to prefetch, for each strip */
  int lines;            /* lines to prefetch at each block; 0: as many bytes as a block and its scales have */
  const char *rows;     /* the first row, at the first cell */
  size_t step;
  float *sums; /* [rows][ld] the sums over the cells before */
  size_t ld;
  const uint8_t *codes; /* the cell's codes, a line for each four inputs; NULL: `weights` has them packed */
} quant_part;

typedef void quant_kernel(const quant_part *p);

enum {
  QUANT_TALLEST = 6,
  QUANT_STRIPS = CPU_PANEL / QUANT_OUTPUTS,
  QUANT_PART_CELLS = 1, /* cells of a strip that all rows use before the next: three fill the L1 cache of a Zen 4 */
};

/* For a single row, weights are prefetched this number of bytes ahead, past the ends of cells and strips. With 2560
 * bytes two threads of a Xeon read 33 GB/s (Q4_K, codes alone), with 8192 bytes 25, with 1024 bytes 28. A Zen 3 needs
 * more. */
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { QUANT_AHEAD = 4608 };
#else
enum { QUANT_AHEAD = 2560 };
#endif

/* From this number of tiles on, a cell's codes are unpacked once for all of them, not by each tile. */
enum { QUANT_MANY_TILES = 3 };

/* The kernels of a format: `alone` for a single row and one strip, and one for each tile of up to `rows` rows and
 * `strips` strips. unpack, unpacked: for many tiles of a format with small codes; NULL: each tile unpacks its own. */
typedef struct {
  int rows, strips;
  size_t cell; /* size of a row's cell in bytes */
  quant_kernel *alone, *tile[QUANT_TALLEST];
  void (*unpack)(const uint8_t *weights, int left, uint8_t *codes); /* of one strip */
  quant_kernel *unpacked[QUANT_TALLEST];
} quant_kernels;

#define QUANT_TILE(name, rows) [rows - 1] = name##_##rows,
#define QUANT_UNPACKED(name, rows) [rows - 1] = name##_unpacked_##rows,

/* Called at each block: prefetches lines that are needed later. Returns where to continue at the next block. */
VI const uint8_t *quant_ask_ahead(const quant_format *f, const quant_part *p, const int strips, const uint8_t *ahead) {
  if (p->lines == 0) {
    const size_t share = quant_layout_of(f, QUANT_CELL).bytes / QUANT_BLOCKS;
#pragma GCC unroll 9
    for (size_t i = 0; i < share; i += QUANT_LINE) __builtin_prefetch(ahead + i, 0, 3);
    return ahead + share;
  }
  for (int i = 0; i < p->lines; i++, ahead += QUANT_LINE)
    for (int s = 0; s < strips; s++) __builtin_prefetch(ahead + (size_t)s * p->apart, 0, 3);
  return ahead;
}

/* sums[r][..] = n rows of x times `count` panels of m from `first` on.
 *
 * A single row reads each strip from end to end. Several rows form `heights` tiles, whose numbers of rows differ by at
 * most 1. The strips are divided into parts of QUANT_PART_CELLS cells. All tiles use a part while it is in the L1
 * cache, and each tile prefetches its share (`lines`) of the next part. */
VI void quant_walk(const quant_format *f, const quant_kernels *k, const cpu_matrix *m, int first, int count,
                   const char *x, size_t step, int n, float *sums, size_t ld) {
  const size_t strip_bytes = quant_strip_bytes(f, m->k), cell_bytes = quant_layout_of(f, QUANT_CELL).bytes;
  const bool alone = n == 1;
  const int all = quant_cells(m->k), heights = (n + k->rows - 1) / k->rows, strips = alone ? 1 : k->strips;
  const int lines = alone ? 0 : (int)cell_bytes / (QUANT_BLOCKS * QUANT_LINE * heights) + 1;
  const bool unpacks = k->unpack && quant_is_small(f) && heights >= QUANT_MANY_TILES;
  uint8_t codes[QUANT_CELL * QUANT_OUTPUTS] __attribute__((aligned(64)));
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int strip = 0; strip < QUANT_STRIPS * count; strip += strips) {
    const uint8_t *weights = (const uint8_t *)m->data + (size_t)(QUANT_STRIPS * first + strip) * strip_bytes;
    quant_part p = {.apart = strip_bytes, .lines = lines, .step = step, .ld = ld};
    for (int cell = 0; cell < all; cell += p.cells) {
      p.weights = weights + (size_t)cell * cell_bytes, p.left = m->k - cell * QUANT_CELL;
      p.cells = alone || all - cell < QUANT_PART_CELLS ? all - cell : QUANT_PART_CELLS;
      const bool last = cell + p.cells == all;
      p.ahead = alone  ? weights + QUANT_AHEAD
                : last ? weights + (size_t)strips * strip_bytes
                       : p.weights + (size_t)p.cells * cell_bytes;
      if (unpacks) k->unpack(p.weights, p.left, codes), p.codes = codes;
      for (int i = 0; i < heights; i++) {
        const int from = n * i / heights, rows = n * (i + 1) / heights - from;
        p.rows = x + (size_t)from * step + (size_t)cell * k->cell;
        p.sums = sums + (size_t)from * ld + (size_t)strip * QUANT_OUTPUTS;
        (alone ? k->alone : unpacks ? k->unpacked[rows - 1] : k->tile[rows - 1])(&p);
        p.ahead += (size_t)(p.cells * lines * QUANT_BLOCKS * QUANT_LINE);
      }
    }
  }
}

/* ---- one format -------------------------------------------------------------------------------------------------- */

VI void quant_pack_panel(const quant_format *f, char *panel, int k, const char *const row[CPU_PANEL]) {
  for (int j = 0; j < CPU_PANEL; j++)
    if (row[j])
      quant_pack(f, row[j], k, j % QUANT_OUTPUTS,
                 (uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k));
}

VI void quant_unpack_output(const quant_format *f, const char *panel, int k, int j, float *out) {
  quant_unpack(f, (const uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k), k, j % QUANT_OUTPUTS,
               out);
}

/* Defines the cpu_format cpu_format_<called>, for weights in the quant_format `name` and x rounded to `activations`
 * bits. `cell` is the type of a cell of x, which round_cell(format, x, groups, cell) fills. `kernels` are the format's
 * quant_kernels. `tiles` are statements that may compute the product in another way and return. */
#define QUANT_DEFINE(called, name, type, activations, cell, kernels, tiles)                                            \
  static size_t called##_panel_bytes(int k) { return QUANT_STRIPS * quant_strip_bytes(&name, k); }                     \
  static void called##_pack(char *panel, int k, const char *const row[CPU_PANEL]) {                                    \
    quant_pack_panel(&name, panel, k, row);                                                                            \
  }                                                                                                                    \
  static void called##_unpack(const char *panel, int k, int j, float *out) {                                           \
    quant_unpack_output(&name, panel, k, j, out);                                                                      \
  }                                                                                                                    \
  static size_t called##_row_bytes(int k) { return (size_t)quant_cells(k) * sizeof(cell); }                            \
  static void called##_round(const float *x, int k, char *to) {                                                        \
    for (int at = 0; at < k; at += QUANT_CELL)                                                                         \
      round_cell(&name, x + at, (k - at < QUANT_CELL ? k - at : QUANT_CELL) / name.group,                              \
                 (cell *)to + at / QUANT_CELL);                                                                        \
  }                                                                                                                    \
  static void called##_multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,          \
                                float *sums, size_t ld) {                                                              \
    tiles quant_walk(&name, &kernels, m, first, count, x, step, n, sums, ld);                                          \
  }                                                                                                                    \
  extern const cpu_format V(cpu_format_##called);                                                                      \
  const cpu_format V(cpu_format_##called) = {#name,                                                                    \
                                             type,                                                                     \
                                             activations,                                                              \
                                             called##_panel_bytes,                                                     \
                                             called##_pack,                                                            \
                                             called##_unpack,                                                          \
                                             called##_row_bytes,                                                       \
                                             called##_round,                                                           \
                                             called##_multiply};

#endif
