/* Products with quantized matrices: see quant.h for what is computed. A few rows at a time keep their sums in registers while
 * a part of a panel goes by, short enough to stay in the first-level cache for all of them. */
#include "format.h"
#include "quant_tiles.h"
#include "simd.h"

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
  PART_BYTES =
      16384,   /* of a panel, which all rows take before the next: there is room in the first-level cache for both */
  AHEAD = 4096 /* bytes: so far in advance is asked for what one call reads, over the ends of panels */
};

/* ---- rows of x ------------------------------------------------------------------------------------------------------- */

static int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Rounds some numbers, a multiple of 16, to their digits; returns their sum. */
VI int32_t round_numbers(const float *x, int n, v16 inverse, int8_t *low, int8_t *high, unsigned *wide) {
  i16 sum = i_set1(0);
  for (int i = 0; i < n; i += 16) {
    v16 scaled = v_mul(v_load(x + i), inverse);
    i16 q = i_nearest(scaled);
    i_store_i8(low + i, q);
    i_store_i8(high + i, i_right(i_add(q, i_set1(128)), 8));
    *wide |= v_gt_mask(v_abs(scaled), v_set1(127.45f));
    sum = i_add(sum, q);
  }
  return i_sum(sum);
}

VI void round_cell(const quant_format *f, const float *x, int n, quant_x *to) {
  v16 largest = v_set1(0.0f), squares = largest;
  for (int i = 0; i < n; i += 16) {
    v16 v = v_load(x + i);
    largest = v_max(v_abs(v), largest);
    squares = v_fma(v, v, squares);
  }
  float square = v_sum(squares);
  memset(to, 0, sizeof *to);
  if (!isfinite(square)) {
    to->scale = NAN;
    return;
  }
  float most = v_hmax(largest), spread = f->spread * sqrtf(square / (float)n);
  to->scale = fmaxf(fminf(most, spread) / QUANT_BYTE, most / QUANT_MOST);
  v16 inverse = v_set1(to->scale > 0.0f ? fminf(1.0f / to->scale, 0x1p126f) : 0.0f);
  for (int g = 0, at = 0; at < n; g++, at += f->group) {
    unsigned wide = 0;
    int32_t sum = round_numbers(x + at, f->group, inverse, to->low + at, to->high + at, &wide);
    if (wide) to->wide |= 1u << at / QUANT_BLOCK;
    switch (f->scales) {
    case QUANT_F16_MIN: to->extra[g] = bits_of((float)sum); break;
    case QUANT_WHOLE_MIN: to->extra[g & ~1] |= (int32_t)((uint32_t)sum << 16 * (g % 2)) & (g % 2 ? -1 : 0xffff); break;
    default: to->extra[g] = -f->zero * sum;
    }
  }
}

VI void round_row(const quant_format *f, const float *x, int k, char *to) {
  quant_x *cell = (quant_x *)to;
  for (int at = 0; at < k; at += QUANT_CELL) round_cell(f, x + at, k - at < QUANT_CELL ? k - at : QUANT_CELL, cell++);
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

/* Four number t of a block's codes. */
VI i16 code_at(const int bits, const uint8_t *block, const int t) {
  if (bits == 8) return i_load(block + QUANT_LINE * t);
  i16 line = i_load(block + QUANT_LINE * (t % 4));
  i16 code = i_and(t < 4 ? line : i_right(line, 4), 0x0f0f0f0f);
  if (bits == 4) return code;
  i16 plane = i_load(block + QUANT_LINE * 4);
  return i_or(code, i_and(t < 4 ? i_left(plane, 4 - t) : i_right(plane, t - 4), 0x10101010));
}

/* What a kernel works on: some cells of a panel, from `strip` on, and of rows `step` bytes apart; `left` numbers are left of k
 * where they begin. */
typedef struct {
  const uint8_t *weights;
  int strip, cells, left;
  const uint8_t *ahead; /* what is asked for meanwhile, */
  int lines;            /* so many at every block */
  const quant_x *x;
  size_t step;
  float *sums;
  size_t ld;
} part;

VI const quant_x *row_of(const part *p, int r) { return (const quant_x *)((const char *)p->x + (size_t)r * p->step); }

/* The sums of a tile: rows by strips. */
typedef i16 tile_sums[TILE_ROWS][TILE_STRIPS];
#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
#define EACH_STRIP _Pragma("GCC unroll 2") for (int s = 0; s < TILE_STRIPS; s++)

/* sum += a group's codes times one digit, which rows have at `digits`. */
VI void dot_group(const int rows, const quant_format *f, const uint8_t *const block[TILE_STRIPS], const int within,
                  const int8_t *const digits[TILE_ROWS], tile_sums sum) {
  const int fours = f->group / 4;
#pragma GCC unroll 8
  for (int i = 0; i < fours; i++) {
    int t = within * fours + (f->bits == 8 ? i : i / 2 + i % 2 * 4); /* the two fours of a line one behind the other */
    i16 code[TILE_STRIPS];
    EACH_STRIP code[s] = code_at(f->bits, block[s], t);
    EACH_ROW {
      int32_t four = four_at(digits[r] + 4 * t);
      EACH_STRIP sum[r][s] = i_dot4(sum[r][s], code[s], four);
    }
  }
}

/* A group's sums of (code - zero) * q. */
VI void sum_group(const int rows, const quant_format *f, const uint8_t *const block[TILE_STRIPS], const int g,
                  const quant_x *const x[TILE_ROWS], unsigned wide, tile_sums sum) {
  const int per_block = QUANT_BLOCK / f->group, b = g / per_block, within = g % per_block;
  const int8_t *low[TILE_ROWS], *high[TILE_ROWS];
  EACH_ROW low[r] = x[r]->low + QUANT_BLOCK * b, high[r] = x[r]->high + QUANT_BLOCK * b;
  EACH_ROW EACH_STRIP sum[r][s] = i_set1(0);
  if (wide >> b & 1) {
    dot_group(rows, f, block, within, high, sum);
    EACH_ROW EACH_STRIP sum[r][s] = i_left(sum[r][s], 8);
  }
  if (f->zero) EACH_ROW EACH_STRIP sum[r][s] = i_add(sum[r][s], i_set1(x[r]->extra[g]));
  dot_group(rows, f, block, within, low, sum);
}

/* sums += a cell */
VI void add_cell(const int rows, const quant_format *f, const part *p, const quant_cell c[TILE_STRIPS],
                 const quant_x *const x[TILE_ROWS], const uint8_t *ahead) {
  const int per_block = QUANT_BLOCK / f->group;
  tile_sums total, sum;
  v16 t[TILE_ROWS][TILE_STRIPS];
  unsigned wide = 0;
  EACH_ROW wide |= x[r]->wide;
  EACH_ROW EACH_STRIP total[r][s] = i_set1(0), t[r][s] = v_set1(0.0f);
  for (int b = 0; b < c[0].blocks; b++) {
    const uint8_t *block[TILE_STRIPS];
    EACH_STRIP block[s] = c[s].codes + (size_t)b * quant_block_bytes(f);
    for (int i = 0; i < p->lines; i++, ahead += QUANT_LINE) __builtin_prefetch(ahead, 0, 3);
#pragma GCC unroll 2
    for (int g = b * per_block; g < (b + 1) * per_block; g++) {
      sum_group(rows, f, block, g, x, wide, sum);
      EACH_STRIP {
        const size_t at = (size_t)QUANT_OUTPUTS * (size_t)g;
        if (quant_is_whole(f)) {
          i16 scale = i_load_i8((const int8_t *)c[s].scales + at);
          EACH_ROW total[r][s] = i_add(total[r][s], i_mul(sum[r][s], scale));
        } else {
          v16 scale = v_load_f16((const uint16_t *)c[s].scales + at);
          EACH_ROW t[r][s] = v_fma(i_to_float(sum[r][s]), scale, t[r][s]);
        }
        if (f->scales == QUANT_F16_MIN) {
          v16 minimum = v_load_f16((const uint16_t *)c[s].minima + at);
          EACH_ROW t[r][s] = v_fma(float_at(&x[r]->extra[g]), minimum, t[r][s]);
        }
      }
    }
  }
  EACH_ROW EACH_STRIP {
    float *acc = p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s;
    v16 of_groups = quant_is_whole(f) ? i_to_float(total[r][s]) : t[r][s];
    v_store(acc, quant_add_cell(f, &c[s], v_load(acc), of_groups, x[r]->scale, x[r]->extra));
  }
}

VI void few_rows(const int rows, const quant_format *f, const part *p) {
  const uint8_t *weights = p->weights;
  const quant_x *x[TILE_ROWS];
  EACH_ROW x[r] = row_of(p, r);
  for (int i = 0; i < p->cells; i++) {
    quant_cell c[TILE_STRIPS];
    EACH_STRIP c[s] = quant_cell_at(f, weights, p->left - i * QUANT_CELL, p->strip + s);
    add_cell(rows, f, p, c, x, p->ahead + (size_t)(i * p->lines * QUANT_BLOCKS * QUANT_LINE));
    EACH_ROW x[r]++;
    weights += c[0].bytes;
  }
}

typedef void rows_kernel(const part *p);

/* Some panels for n rows, as many at a time as there are kernels for. */
VI void multiply(const quant_format *f, rows_kernel *const *kernels, const cpu_matrix *m, int first, int count,
                 const char *x, size_t step, int n, float *sums, size_t ld) {
  const size_t panel_bytes = quant_panel_bytes(f, m->k), cell_bytes = quant_panel_bytes(f, QUANT_CELL);
  const int all = quant_cells(m->k), most = PART_BYTES / (int)cell_bytes;
  const int heights = (n + TILE_ROWS - 1) / TILE_ROWS;
  const int lines = (int)cell_bytes / (QUANT_BLOCKS * QUANT_LINE) / (heights * (STRIPS / TILE_STRIPS)) + 1;
  part p = {.step = step, .ld = ld, .lines = lines};
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int panel = 0; panel < count; panel++)
    for (int cell = 0; cell < all; cell += p.cells) {
      p.weights = (const uint8_t *)m->data + (size_t)(first + panel) * panel_bytes + (size_t)cell * cell_bytes;
      p.left = m->k - cell * QUANT_CELL, p.cells = all - cell < most ? all - cell : most;
      size_t bytes = (size_t)p.cells * cell_bytes; /* the calls share the next part */
      p.ahead = p.weights + (heights > 1 && bytes > AHEAD ? bytes : AHEAD);
      for (int i = 0; i < heights; i++) {
        int from = n * i / heights, rows = n * (i + 1) / heights - from;
        p.x = (const quant_x *)(x + (size_t)from * step) + cell;
        for (p.strip = 0; p.strip < STRIPS; p.strip += TILE_STRIPS) {
          p.sums = sums + (size_t)from * ld + (size_t)panel * CPU_PANEL + (size_t)p.strip * QUANT_OUTPUTS;
          kernels[rows - 1](&p);
          p.ahead += (size_t)(p.cells * lines * QUANT_BLOCKS * QUANT_LINE);
        }
      }
    }
}

/* ---- one format ------------------------------------------------------------------------------------------------------ */

VI void pack_panel(const quant_format *f, char *panel, int k, const char *const row[CPU_PANEL]) {
  for (int j = 0; j < CPU_PANEL; j++)
    if (row[j]) quant_pack(f, row[j], k, j, (uint8_t *)panel);
}

#define ROWS(name, n)                                                                                                  \
  static void name##_rows##n(const part *p) { few_rows(n, &name, p); }
#if defined(__AVX512F__)
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1)                                                                                                        \
  ROWS(name, 2)                                                                                                        \
  ROWS(name, 3)                                                                                                        \
  ROWS(name, 4) static rows_kernel *const name##_kernels[] = {name##_rows1, name##_rows2, name##_rows3, name##_rows4};
#elif defined(__AVX2__)
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1) ROWS(name, 2) static rows_kernel *const name##_kernels[] = {name##_rows1, name##_rows2};
#else
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1)                                                                                                        \
  static rows_kernel *const name##_kernels[] = {name##_rows1};
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
  static size_t name##_panel_bytes(int k) { return quant_panel_bytes(&name, k); }                                      \
  static void name##_pack(char *panel, int k, const char *const row[CPU_PANEL]) { pack_panel(&name, panel, k, row); }  \
  static void name##_unpack(const char *panel, int k, int j, float *out) {                                             \
    quant_unpack(&name, (const uint8_t *)panel, k, j, out);                                                            \
  }                                                                                                                    \
  static size_t name##_row_bytes(int k) { return (size_t)quant_cells(k) * sizeof(quant_x); }                           \
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
