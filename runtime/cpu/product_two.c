/* Products with quantized matrices, with rows rounded to two digits (defined in quant.h). A few rows at a time keep
 * their sums in registers while a part of a panel is read; the part is short enough to stay in the L1 cache for all of
 * them. */
#include "product_two.h"

/* The shapes of tiles: the number of rows, and of strips of a panel, that share loaded data. The number of registers
 * limits them. TILES lists the numbers of rows that tiles have: rows are divided evenly. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 4, TILE_STRIPS = 2 };
#define TILES(T, name) T(name, 2) T(name, 3) T(name, 4)
#elif defined(__AVXVNNI__)
enum { TILE_ROWS = 3, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 2) T(name, 3)
#elif defined(__AVX2__) || defined(SIMD_NEON)
enum { TILE_ROWS = 2, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 1) T(name, 2)
#else
enum { TILE_ROWS = 1, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 1)
#endif

/* ---- rows of x --------------------------------------------------------------------------------------------------- */

/* Rounds a group to its two digits. Returns the sum of the rounded numbers. */
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

VI void round_cell(const quant_format *f, const float *x, int groups, quant_two *to) {
  float most;
  memset(to->extra, 0, sizeof to->extra);
  if (!quant_largest(x, groups * f->group, &most)) {
    to->scale = NAN;
    memset(to->digits, 0, sizeof to->digits);
    return;
  }
  to->scale = most / (float)f->limit;
  v16 inverse = v_set1(quant_inverse(most, f->limit));
  int32_t before = 0;
  for (int g = 0; g < groups; g++) {
    int32_t sum = round_group(f, x + g * f->group, inverse, to->digits + 2 * g * f->group);
    switch (f->scales) {
    case QUANT_F16_MIN: to->extra[g] = quant_bits_of((float)sum); break;
    case QUANT_WHOLE_MIN:
    case QUANT_HALVES_MIN:
      if (g % 2) to->extra[g / 2] = quant_pair(before, sum);
      before = sum;
      break;
    default: to->extra[g] = -f->zero * sum;
    }
  }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
#define EACH_STRIP _Pragma("GCC unroll 2") for (int s = 0; s < strips; s++)

typedef const quant_two *tile_rows[TILE_ROWS];

/* The sums of a tile: rows by strips. */
typedef i16 tile_sums[TILE_ROWS][TILE_STRIPS];

/* sum = the sum of code * q over the block's group `within`, exactly. */
VI void sum_group(const int rows, const int strips, const quant_format *f, const uint8_t *const block[TILE_STRIPS],
                  const int within, int g, const tile_rows x, tile_sums sum) {
  const int fours = f->group / 4;
  tile_sums high;
  EACH_ROW EACH_STRIP high[r][s] = i_set1(0), sum[r][s] = i_set1(quant_extra(f, &x[r]->extra[g]));
#pragma GCC unroll 4
  for (int line = 0; line < 4; line++) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const int four = line + 4 * half;
      if (four / fours != within) continue;
      i16 code[TILE_STRIPS];
      EACH_STRIP code[s] = quant_code(f, block[s], four);
      EACH_ROW {
        const int8_t *digits = x[r]->digits + 2 * f->group * g + four % fours / 4 * 16;
        i_fours high_fours = i_fours_at(digits), low_fours = i_fours_at(digits + f->group);
        EACH_STRIP high[r][s] = i_dot4(high[r][s], code[s], high_fours, line);
        EACH_STRIP sum[r][s] = i_dot4(sum[r][s], code[s], low_fours, line);
      }
    }
  }
  EACH_ROW EACH_STRIP sum[r][s] = i_add(i_left(high[r][s], f->shift), sum[r][s]);
}

/* Adds a cell to the sums so far. Returns where prefetching continues. */
VI const uint8_t *add_cell(const int rows, const int strips, const quant_format *f, const quant_part *p,
                           const quant_cell c[TILE_STRIPS], const tile_rows x, const uint8_t *ahead) {
  const int per_block = QUANT_BLOCK / f->group;
  v16 t[TILE_ROWS][TILE_STRIPS];
  EACH_ROW EACH_STRIP t[r][s] = v_set1(0.0f);
  for (int b = 0; b < c[0].blocks; b++) {
    const uint8_t *block[TILE_STRIPS];
    EACH_STRIP block[s] = c[s].codes + (size_t)b * quant_block_bytes(f);
    ahead = quant_ask_ahead(f, p, strips, ahead);
#pragma GCC unroll 2
    for (int within = 0; within < per_block; within++) {
      int g = b * per_block + within;
      tile_sums sum;
      sum_group(rows, strips, f, block, within, g, x, sum);
      EACH_STRIP {
        v16 scale = quant_scale(f, &c[s], g);
        EACH_ROW t[r][s] = v_fma(i_to_float(sum[r][s]), scale, t[r][s]);
        if (f->scales == QUANT_F16_MIN) {
          v16 minimum = quant_minimum(&c[s], g);
          EACH_ROW t[r][s] = v_fma(quant_float_at(&x[r]->extra[g]), minimum, t[r][s]);
        }
      }
    }
  }
  quant_factors of[TILE_STRIPS];
  EACH_STRIP of[s] = quant_factors_of(f, &c[s]);
  EACH_ROW EACH_STRIP {
    float *acc = p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s;
    v_store(acc, two_end_cell(f, &of[s], v_load(acc), t[r][s], x[r]));
  }
  return ahead;
}

VI void few_rows(const int rows, const int strips, const quant_format *f, const quant_part *p) {
  const uint8_t *weights = p->weights, *ahead = p->ahead;
  tile_rows x;
  EACH_ROW x[r] = (const quant_two *)(p->rows + (size_t)r * p->step);
  for (int left = p->left, i = 0; i < p->cells; i++, left -= QUANT_CELL) {
    quant_cell c[TILE_STRIPS];
    EACH_STRIP c[s] = quant_cell_at(f, weights + (size_t)s * p->apart, left);
    ahead = add_cell(rows, strips, f, p, c, x, ahead);
    EACH_ROW x[r]++;
    weights += c[0].bytes;
  }
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

#define TILE(name, rows)                                                                                               \
  static void name##_##rows(const quant_part *p) { few_rows(rows, TILE_STRIPS, &name, p); }
#if defined(__AMX_INT8__) || defined(__ARM_FEATURE_MATMUL_INT8)
#define IN_TILES(name)                                                                                                 \
  if (n > TILES_TWO_FROM) {                                                                                            \
    V(tiles_two_##name)(m, first, count, x, step, n, sums, ld);                                                        \
    return;                                                                                                            \
  }
#else
#define IN_TILES(name)
#endif

#define DEFINE(name, type, ...)                                                                                        \
  static const quant_format name = {type, __VA_ARGS__};                                                                \
  static void name##_alone(const quant_part *p) { few_rows(1, 1, &name, p); }                                          \
  TILES(TILE, name)                                                                                                    \
  static const quant_kernels name##_kernels = {.rows = TILE_ROWS,                                                      \
                                               .strips = TILE_STRIPS,                                                  \
                                               .cell = sizeof(quant_two),                                              \
                                               .alone = name##_alone,                                                  \
                                               .tile = {TILES(QUANT_TILE, name)}};                                     \
  QUANT_DEFINE(name##_two, name, type, 16, quant_two, name##_kernels, IN_TILES(name))
QUANT_FORMATS(DEFINE)
