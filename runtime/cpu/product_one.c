/* Products with quantized matrices, rows rounded to one digit: quant.h has the definition. A few rows at a time keep
 * their sums in registers while a part of a strip is read. */
#include "product_one.h"

/* Rows, and strips of a panel, that share loaded data; the number of registers limits them. All rows share the unpacked
 * codes. Two strips share the fours of x, since the processor computes only as many dot products in a cycle as it
 * loads. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 6, TILE_STRIPS = 2 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 2, TILE_STRIPS = 1 };
#else
enum { TILE_ROWS = 1, TILE_STRIPS = 1 };
#endif

/* ---- rows of x --------------------------------------------------------------------------------------------------- */

/* Rounds block b of a row; returns the sum that its minimum is multiplied with. */
VI float round_block(const quant_format *f, const float *x, int b, quant_one *to) {
  const int halves = QUANT_BLOCK / 16, per_block = QUANT_BLOCK / f->group;
  float most;
  bool finite = quant_largest(x, QUANT_BLOCK, &most);
  float mean = v_sum(v_add(v_abs(v_load(x)), v_abs(v_load(x + 16)))) * (1.0f / QUANT_BLOCK);
  bool fine = finite && most > QUANT_FAR * mean;
  v16 inverse = v_set1(quant_inverse(most, QUANT_LIMIT)), finer = v_set1(1 << QUANT_FINER);
  int32_t sum = 0, finer_sum = 0;
  for (int i = 0; i < halves; i++) {
    const int at = QUANT_BLOCK * b + 16 * i, group = b * per_block + (per_block == 2 ? i : 0);
    v16 scaled = v_mul(v_load(x + 16 * i), inverse);
    i16 q = finite ? i_nearest(scaled) : i_set1(0);
    i_store_i8(to->digit + at, q);
    int32_t of_q = i_sum(q), of_finer = 0;
    if (fine) {
      i16 r = i_nearest(v_mul(v_sub(scaled, i_to_float(q)), finer));
      i_store_i8(to->finer + at, r);
      of_finer = i_sum(r);
    }
    if (f->zero) to->extra[group] -= f->zero * of_q, to->finer_extra[group] -= f->zero * of_finer;
    sum += of_q, finer_sum += of_finer;
  }
  to->scale[b] = finite ? most / (float)QUANT_LIMIT : NAN;
  to->finer_scale[b] = to->scale[b] * (1.0f / (1 << QUANT_FINER));
  if (fine) to->fine |= 1u << b;
  float all = to->scale[b] * (float)sum;
  return fine ? all + to->finer_scale[b] * (float)finer_sum : all;
}

/* Rounds the sums of a cell's groups to 16 bits with one scale. */
VI void round_sums(const float sum[16], quant_one *to) {
  float most;
  int32_t whole[16] = {0};
  if (!quant_largest(sum, 16, &most)) {
    to->sums = NAN;
    return;
  }
  to->sums = most / (float)QUANT_SUM_LIMIT;
  i_store(whole, i_nearest(v_mul(v_load(sum), v_set1(quant_inverse(most, QUANT_SUM_LIMIT)))));
  for (int i = 0; i < QUANT_BLOCKS / 2; i++) to->extra[i] = quant_pair(whole[2 * i], whole[2 * i + 1]);
}

VI void round_cell(const quant_format *f, const float *x, int groups, quant_one *to) {
  float sums[16] = {0};
  memset(to->extra, 0, sizeof to->extra), memset(to->finer_extra, 0, sizeof to->finer_extra);
  to->sums = 0.0f, to->fine = 0;
  for (int b = 0; b < groups * f->group / QUANT_BLOCK; b++) {
    sums[b] = round_block(f, x + QUANT_BLOCK * b, b, to);
    if (f->scales == QUANT_F16_MIN) to->extra[b] = quant_bits_of(sums[b]);
  }
  if (f->scales == QUANT_WHOLE_MIN) round_sums(sums, to);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define EACH_ROW _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++)
#define EACH_STRIP _Pragma("GCC unroll 2") for (int s = 0; s < strips; s++)

typedef const quant_one *tile_rows[TILE_ROWS];

/* Numbers of each row and strip of a tile. */
typedef i16 tile_sums[TILE_ROWS][TILE_STRIPS];
typedef v16 tile_floats[TILE_ROWS][TILE_STRIPS];

/* sum[i] = quant_begin + the sum of code * q over group i of the block, exactly. */
VI void sum_block(const int rows, const int strips, const quant_format *f, const uint8_t *const block[TILE_STRIPS],
                  int b, const tile_rows x, tile_sums sum[2]) {
  const int per_block = QUANT_BLOCK / f->group;
#pragma GCC unroll 2
  for (int i = 0; i < per_block; i++)
    EACH_ROW EACH_STRIP sum[i][r][s] = i_set1(f->zero ? x[r]->extra[b * per_block + i] : quant_begin(f));
#pragma GCC unroll 4
  for (int line = 0; line < 4; line++) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const int four = line + 4 * half, i = per_block == 2 ? half : 0;
      i16 code[TILE_STRIPS];
      EACH_STRIP code[s] = quant_code(f, block[s], four);
      EACH_ROW {
        int32_t digits = quant_four_at(x[r]->digit + QUANT_BLOCK * b + 4 * four);
        EACH_STRIP sum[i][r][s] = (f->bits == 8 ? i_dot4 : i_dot4_small)(sum[i][r][s], code[s], digits);
      }
    }
  }
}

/* Adds a block's group, or both of its groups, to t. */
VI void add_block(const int rows, const int strips, const quant_format *f, const quant_cell c[TILE_STRIPS], int b,
                  const tile_rows x, tile_floats t) {
  tile_sums sum[2];
  const uint8_t *block[TILE_STRIPS];
  EACH_STRIP block[s] = c[s].codes + (size_t)b * quant_block_bytes(f);
  sum_block(rows, strips, f, block, b, x, sum);
  EACH_STRIP {
    if (!quant_is_whole(f)) {
      v16 scale = quant_scale(f, &c[s], b);
      EACH_ROW t[r][s] = v_fma(i_to_float(sum[0][r][s]), v_mul(scale, v_set1(x[r]->scale[b])), t[r][s]);
      if (f->scales == QUANT_F16) continue;
      v16 minimum = quant_minimum(&c[s], b);
      EACH_ROW t[r][s] = v_fma(minimum, quant_float_at(&x[r]->extra[b]), t[r][s]);
    } else if (f->group == QUANT_BLOCK) {
      v16 scale = quant_scale(f, &c[s], b), less = quant_less(scale);
      EACH_ROW t[r][s] = v_fma(quant_scaled(sum[0][r][s], scale, less), v_set1(x[r]->scale[b]), t[r][s]);
    } else {
      v16 first = quant_scale(f, &c[s], 2 * b), second = quant_scale(f, &c[s], 2 * b + 1);
      EACH_ROW {
        v16 u = v_fma(i_to_float(sum[1][r][s]), second, v_mul(i_to_float(sum[0][r][s]), first));
        t[r][s] = v_fma(u, v_set1(x[r]->scale[b]), t[r][s]);
      }
    }
  }
}

VI void few_rows(const int rows, const int strips, const quant_format *f, one_finer *add_finer, const quant_part *p) {
  const uint8_t *weights = p->weights, *ahead = p->ahead;
  tile_rows x;
  EACH_ROW x[r] = (const quant_one *)(p->rows + (size_t)r * p->step);
  for (int left = p->left, i = 0; i < p->cells; i++, left -= QUANT_CELL) {
    quant_cell c[TILE_STRIPS];
    tile_floats t;
    EACH_STRIP c[s] = quant_cell_at(f, weights + (size_t)s * p->apart, left);
    EACH_ROW EACH_STRIP t[r][s] = one_begin_cell(f, p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s);
    for (int b = 0; b < c[0].blocks; b++) {
      ahead = quant_ask_ahead(f, p, strips, c[0].codes + (size_t)b * quant_block_bytes(f), ahead);
      add_block(rows, strips, f, c, b, x, t);
    }
    EACH_ROW if (x[r]->fine) EACH_STRIP t[r][s] = add_finer(&c[s], x[r], t[r][s]);
    EACH_STRIP {
      const quant_factors of = quant_factors_of(f, &c[s]);
      EACH_ROW one_end_cell(f, &of, x[r], t[r][s], p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s);
    }
    EACH_ROW x[r]++;
    weights += c[0].bytes;
  }
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

#define KERNEL(name, rows, strips)                                                                                     \
  static void name##_##rows##x##strips(const quant_part *p) { few_rows(rows, strips, &name, name##_finer, p); }
#if defined(__AVX512F__) /* rows are shared out evenly, so no tile of several has a single row */
#define KERNELS(name)                                                                                                  \
  KERNEL(name, 1, 1)                                                                                                   \
  KERNEL(name, 2, 2)                                                                                                   \
  KERNEL(name, 3, 2)                                                                                                   \
  KERNEL(name, 4, 2)                                                                                                   \
  KERNEL(name, 5, 2)                                                                                                   \
  KERNEL(name, 6, 2)
#define TILES(name)                                                                                                    \
  { NULL, name##_2x2, name##_3x2, name##_4x2, name##_5x2, name##_6x2 }
#elif defined(__AVX2__)
#define KERNELS(name) KERNEL(name, 1, 1) KERNEL(name, 2, 1)
#define TILES(name)                                                                                                    \
  { name##_1x1, name##_2x1 }
#else
#define KERNELS(name) KERNEL(name, 1, 1)
#define TILES(name)                                                                                                    \
  { name##_1x1 }
#endif

#if defined(__AMX_INT8__)
#define IN_TILES(name)                                                                                                 \
  if (n > one_most_by_vectors(&name)) {                                                                                \
    V(tiles_one_##name)(m, first, count, x, step, n, sums, ld);                                                        \
    return;                                                                                                            \
  }
#else
#define IN_TILES(name)
#endif

#define DEFINE(name, type, ...)                                                                                        \
  static const quant_format name = {type, __VA_ARGS__};                                                                \
  ONE_DEFINE_FINER(name)                                                                                               \
  KERNELS(name)                                                                                                        \
  static const quant_kernels name##_kernels = {TILE_ROWS, TILE_STRIPS, sizeof(quant_one), name##_1x1, TILES(name)};    \
  QUANT_DEFINE(name, name, type, 8, quant_one, name##_kernels, IN_TILES(name))
QUANT_FORMATS(DEFINE)
