/* Products with quantized matrices: see quant.h for what is computed. A few rows at a time keep their sums in registers while
 * a part of a panel goes by, short enough to stay in the first-level cache for all of them. */
#include "format.h"
#include "quant_tiles.h"
#include "simd.h"

#include <stdbool.h>

/* Rows, and strips of a panel, that share what is loaded: as many as there are registers for. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 4, TILE_STRIPS = 2 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 2, TILE_STRIPS = 1 };
#else
enum { TILE_ROWS = 1, TILE_STRIPS = 1 };
#endif

enum {
  STRIPS = CPU_PANEL / QUANT_OUTPUTS,
  PART_CELLS = 3, /* of a panel's strips, which all rows take before the next: some 15 KB */
  AHEAD = 8192    /* bytes: a single row's weights are asked for so far in advance, over the ends of cells and strips */
};

/* ---- rows of x ------------------------------------------------------------------------------------------------------- */

static int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Rounds a group to its digits; returns their sum. */
VI int32_t round_group(const quant_format *f, const float *x, v16 inverse, int8_t *digits) {
  const int32_t half = 1 << (f->shift - 1), rest = (1 << f->shift) - 1;
  i16 sum = i_set1(0);
  for (int i = 0; i < f->group; i += 16) {
    i16 q = i_nearest(v_mul(v_load(x + i), inverse)), raised = i_add(q, i_set1(half));
    i_store_i8(digits + i, i_right(raised, f->shift));
    i_store_i8(digits + f->group + i, i_add(i_and(raised, rest), i_set1(-half)));
    sum = i_add(sum, q);
  }
  return i_sum(sum);
}

VI void round_cell(const quant_format *f, const float *x, int groups, quant_row to) {
  v16 largest = v_set1(0.0f), zero = v_set1(0.0f), all = zero;
  for (int i = 0; i < groups * f->group; i += 16) {
    v16 v = v_load(x + i);
    largest = v_max(v_abs(v), largest);
    all = v_fma(v, zero, all); /* NaN where any is not finite */
  }
  float most = v_hmax(largest);
  if (v_nan_mask(all)) {
    *to.scale = NAN;
    memset(to.extra, 0, (size_t)groups * sizeof *to.extra);
    memset(to.digits, 0, (size_t)(groups * f->group * 2));
    return;
  }
  *to.scale = most / (float)f->limit;
  v16 inverse = v_set1(most > 0.0f ? fminf((float)f->limit / most, 0x1p126f) : 0.0f);
  for (int g = 0; g < groups; g++) {
    int32_t sum = round_group(f, x + g * f->group, inverse, to.digits + 2 * g * f->group);
    switch (f->scales) {
    case QUANT_F16_MIN: to.extra[g] = bits_of((float)sum); break;
    case QUANT_WHOLE_MIN:
      to.extra[g & ~1] = g % 2 ? to.extra[g - 1] | (int32_t)((uint32_t)sum << 16) : sum & 0xffff;
      break;
    default: to.extra[g] = -f->zero * sum;
    }
  }
}

VI void round_row(const quant_format *f, const float *x, int k, char *to) {
  quant_row row = quant_row_at(f, to, k);
  for (int at = 0; at < k; at += QUANT_CELL) {
    int groups = (k - at < QUANT_CELL ? k - at : QUANT_CELL) / f->group;
    round_cell(f, x + at, groups, row);
    row.scale++, row.extra += groups, row.digits += 2 * groups * f->group;
  }
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

VI int32_t four_at(const int8_t *p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  return four;
}

VI v16 float_at(const int32_t *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return v_set1(x);
}

/* Fours t and t + step of a block's codes, which a line of four bits holds both. */
VI void two_codes(const int bits, const uint8_t *block, const int t, const int step, i16 code[2]) {
  if (bits == 8) {
    code[0] = i_load(block + QUANT_LINE * t), code[1] = i_load(block + QUANT_LINE * (t + step));
    return;
  }
  i16 line = i_load(block + QUANT_LINE * t);
  code[0] = i_and(line, 0x0f0f0f0f), code[1] = i_and(i_right(line, 4), 0x0f0f0f0f);
  if (bits == 4) return;
  i16 plane = i_load(block + QUANT_LINE * 4);
  code[0] = i_or(code[0], i_and(i_left(plane, 4 - t), 0x10101010));
  code[1] = i_or(code[1], i_and(i_right(plane, t), 0x10101010));
}

/* What a kernel works on: some cells of strips that lie `apart` bytes from each other, and rows `step` bytes apart. */
typedef struct {
  const uint8_t *weights;
  size_t apart;
  int cells, left;      /* left: of k, where the cells begin */
  const uint8_t *ahead; /* several strips: of each this is asked for meanwhile, */
  int lines;            /* so many lines at each block */
  quant_row row;        /* the first one, at the first cell */
  size_t step;
  float *sums; /* [rows][ld] of the cells before */
  size_t ld;
} part;

/* A row of the tile at the cell that is worked on. */
typedef struct {
  const float *scale;
  const int32_t *extra;
  const int8_t *digits;
} tile_row;

#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
#define EACH_STRIP _Pragma("GCC unroll 2") for (int s = 0; s < strips; s++)

/* The sums of a tile: rows by strips. */
typedef i16 tile_sums[TILE_ROWS][TILE_STRIPS];

/* sum = the products of group g's codes with its q, exactly. */
VI void sum_group(const int rows, const int strips, const quant_format *f, const uint8_t *const block[TILE_STRIPS],
                  const int within, int g, const tile_row x[TILE_ROWS], tile_sums sum) {
  const int fours = f->group / 4;
  tile_sums high;
  EACH_ROW EACH_STRIP high[r][s] = i_set1(0), sum[r][s] = i_set1(f->zero ? x[r].extra[g] : 0);
#pragma GCC unroll 4
  for (int t = 0; t < fours / 2; t++) {
    i16 code[TILE_STRIPS][2];
    EACH_STRIP two_codes(f->bits, block[s] + (size_t)(within * fours * QUANT_LINE), t, fours / 2, code[s]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) EACH_ROW {
        const int8_t *digits = x[r].digits + 2 * f->group * g + 4 * (t + i * fours / 2);
        int32_t high_four = four_at(digits), low_four = four_at(digits + f->group);
        EACH_STRIP high[r][s] = i_dot4(high[r][s], code[s][i], high_four);
        EACH_STRIP sum[r][s] = i_dot4(sum[r][s], code[s][i], low_four);
      }
  }
  EACH_ROW EACH_STRIP sum[r][s] = i_add(i_left(high[r][s], f->shift), sum[r][s]);
}

/* The sums so far, and those of a cell. */
VI void add_cell(const int rows, const int strips, const quant_format *f, const part *p,
                 const quant_cell c[TILE_STRIPS], const tile_row x[TILE_ROWS], const uint8_t *ahead) {
  const int per_block = QUANT_BLOCK / f->group;
  v16 t[TILE_ROWS][TILE_STRIPS];
  EACH_ROW EACH_STRIP t[r][s] = v_set1(0.0f);
  for (int b = 0; b < c[0].blocks; b++) {
    const uint8_t *block[TILE_STRIPS];
    EACH_STRIP block[s] = c[s].codes + (size_t)b * quant_block_bytes(f);
    if (strips == 1) {
#pragma GCC unroll 8
      for (size_t i = 0; i < quant_block_bytes(f); i += QUANT_LINE) __builtin_prefetch(block[0] + AHEAD + i, 0, 3);
    } else {
      for (int i = 0; i < p->lines; i++, ahead += QUANT_LINE)
        EACH_STRIP __builtin_prefetch(ahead + (size_t)s * p->apart, 0, 3);
    }
#pragma GCC unroll 2
    for (int within = 0; within < per_block; within++) {
      int g = b * per_block + within;
      tile_sums sum;
      sum_group(rows, strips, f, block, within, g, x, sum);
      EACH_STRIP {
        const size_t at = (size_t)QUANT_OUTPUTS * (size_t)g;
        v16 scale = quant_is_whole(f) ? v_load_i8((const int8_t *)c[s].scales + at)
                                      : v_load_f16((const uint16_t *)c[s].scales + at);
        EACH_ROW t[r][s] = v_fma(i_to_float(sum[r][s]), scale, t[r][s]);
        if (f->scales == QUANT_F16_MIN) {
          v16 minimum = v_load_f16((const uint16_t *)c[s].minima + at);
          EACH_ROW t[r][s] = v_fma(float_at(&x[r].extra[g]), minimum, t[r][s]);
        }
      }
    }
  }
  EACH_ROW EACH_STRIP {
    float *acc = p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s;
    v_store(acc, quant_add_cell(f, &c[s], v_load(acc), t[r][s], *x[r].scale, x[r].extra));
  }
}

VI void few_rows(const int rows, const int strips, const quant_format *f, const part *p) {
  const uint8_t *weights = p->weights, *ahead = p->ahead;
  tile_row x[TILE_ROWS];
  EACH_ROW {
    const size_t behind = (size_t)r * p->step;
    x[r] = (tile_row){(const float *)((const char *)p->row.scale + behind),
                      (const int32_t *)((const char *)p->row.extra + behind), p->row.digits + behind};
  }
  for (int left = p->left, i = 0; i < p->cells; i++, left -= QUANT_CELL) {
    quant_cell c[TILE_STRIPS];
    EACH_STRIP c[s] = quant_cell_at(f, weights + (size_t)s * p->apart, left);
    add_cell(rows, strips, f, p, c, x, ahead);
    EACH_ROW x[r].scale++, x[r].extra += c[0].groups, x[r].digits += 2 * QUANT_BLOCK * c[0].blocks;
    weights += c[0].bytes;
    ahead += p->lines * QUANT_BLOCKS * QUANT_LINE;
  }
}

typedef void rows_kernel(const part *p);
typedef rows_kernel *kernels_of[TILE_STRIPS][TILE_ROWS]; /* by strips and rows, both less one */

/* sums[r][..] = n rows of x times `count` panels of m from `first` on.
 *
 * One kernel takes up to TILE_ROWS rows, so n rows are `heights` tiles of nearly equal height. One tile: it reads each strip from
 * end to end and prefetches AHEAD bytes before it. Several tiles: the strips are cut into parts of PART_CELLS cells, all tiles
 * use a part while it is in the first-level cache, and each tile prefetches its share (`lines`) of the next part. */
VI void multiply(const quant_format *f, const kernels_of kernels, const cpu_matrix *m, int first, int count,
                 const char *x, size_t step, int n, float *sums, size_t ld) {
  const size_t strip_bytes = quant_strip_bytes(f, m->k), cell_bytes = quant_layout_of(f, QUANT_CELL).bytes;
  const int all = quant_cells(m->k), heights = (n + TILE_ROWS - 1) / TILE_ROWS, strips = heights > 1 ? TILE_STRIPS : 1;
  const int lines = (int)cell_bytes / (QUANT_BLOCKS * QUANT_LINE * heights) + 1;
  const quant_row row = quant_row_at(f, x, m->k);
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int strip = 0; strip < STRIPS * count; strip += strips) {
    const uint8_t *weights = (const uint8_t *)m->data + (size_t)(STRIPS * first + strip) * strip_bytes;
    part p = {.apart = strip_bytes, .lines = lines, .step = step, .ld = ld};
    for (int cell = 0; cell < all; cell += p.cells) {
      p.weights = weights + (size_t)cell * cell_bytes, p.left = m->k - cell * QUANT_CELL;
      p.cells = heights == 1 || all - cell < PART_CELLS ? all - cell : PART_CELLS;
      const bool last = cell + p.cells == all;
      p.ahead = last ? weights + (size_t)strips * strip_bytes : p.weights + (size_t)p.cells * cell_bytes;
      for (int i = 0; i < heights; i++) {
        const int from = n * i / heights, rows = n * (i + 1) / heights - from;
        const size_t behind = (size_t)from * step;
        p.row.scale = (float *)((char *)(row.scale + cell) + behind);
        p.row.extra = (int32_t *)((char *)(row.extra + cell * (QUANT_CELL / f->group)) + behind);
        p.row.digits = row.digits + 2 * QUANT_CELL * cell + behind;
        p.sums = sums + (size_t)from * ld + (size_t)strip * QUANT_OUTPUTS;
        kernels[strips - 1][rows - 1](&p);
        p.ahead += (size_t)(p.cells * lines * QUANT_BLOCKS * QUANT_LINE);
      }
    }
  }
}

/* ---- one format ------------------------------------------------------------------------------------------------------ */

VI void pack_panel(const quant_format *f, char *panel, int k, const char *const row[CPU_PANEL]) {
  for (int j = 0; j < CPU_PANEL; j++)
    if (row[j])
      quant_pack(f, row[j], k, j % QUANT_OUTPUTS,
                 (uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k));
}

VI void unpack_output(const quant_format *f, const char *panel, int k, int j, float *out) {
  quant_unpack(f, (const uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k), k, j % QUANT_OUTPUTS,
               out);
}

#define KERNEL(name, rows, strips)                                                                                     \
  static void name##_##rows##x##strips(const part *p) { few_rows(rows, strips, &name, p); }
#if defined(__AVX512F__) /* what is left of many rows, shared out, is never a row alone */
#define KERNELS(name)                                                                                                  \
  KERNEL(name, 1, 1)                                                                                                   \
  KERNEL(name, 2, 1)                                                                                                   \
  KERNEL(name, 3, 1)                                                                                                   \
  KERNEL(name, 4, 1)                                                                                                   \
  KERNEL(name, 2, 2)                                                                                                   \
  KERNEL(name, 3, 2)                                                                                                   \
  KERNEL(name, 4, 2)                                                                                                   \
  static const kernels_of name##_kernels = {{name##_1x1, name##_2x1, name##_3x1, name##_4x1},                          \
                                            {NULL, name##_2x2, name##_3x2, name##_4x2}};
#elif defined(__AVX2__)
#define KERNELS(name)                                                                                                  \
  KERNEL(name, 1, 1) KERNEL(name, 2, 1) static const kernels_of name##_kernels = {{name##_1x1, name##_2x1}};
#else
#define KERNELS(name)                                                                                                  \
  KERNEL(name, 1, 1)                                                                                                   \
  static const kernels_of name##_kernels = {{name##_1x1}};
#endif

#if defined(__AMX_INT8__)
#define IN_TILES(name)                                                                                                 \
  if (n > TILES_FROM) {                                                                                                \
    V(quant_tiles_##name)(m, first, count, x, step, n, sums, ld);                                                      \
    return;                                                                                                            \
  }
#else
#define IN_TILES(name)
#endif

#define DEFINE(name, type, ...)                                                                                        \
  static const quant_format name = {type, __VA_ARGS__};                                                                \
  KERNELS(name)                                                                                                        \
  static size_t name##_panel_bytes(int k) { return 2 * quant_strip_bytes(&name, k); }                                  \
  static void name##_pack(char *panel, int k, const char *const row[CPU_PANEL]) { pack_panel(&name, panel, k, row); }  \
  static void name##_unpack(const char *panel, int k, int j, float *out) { unpack_output(&name, panel, k, j, out); }   \
  static size_t name##_row_bytes(int k) { return quant_row_bytes(&name, k); }                                          \
  static void name##_round(const float *x, int k, char *to) { round_row(&name, x, k, to); }                            \
  static void name##_multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,            \
                              float *sums, size_t ld) {                                                                \
    IN_TILES(name)                                                                                                     \
    multiply(&name, name##_kernels, m, first, count, x, step, n, sums, ld);                                            \
  }                                                                                                                    \
  extern const cpu_format V(cpu_format_##name);                                                                        \
  const cpu_format V(cpu_format_##name) = {                                                                            \
      #name, type, name##_panel_bytes, name##_pack, name##_unpack, name##_row_bytes, name##_round, name##_multiply};
QUANT_FORMATS(DEFINE)
