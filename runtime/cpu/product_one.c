/* Products with quantized matrices, with rows rounded to one digit (defined in quant.h). A few rows at a time keep
 * their sums in registers while a part of a strip is read. */
#include "product_one.h"

/* The shapes of tiles: the number of rows, and of strips of a panel, that share loaded data. The number of registers
 * limits them; AVX2 without VNNI also has sums in 16 bits. All rows share the unpacked codes. Two strips share the
 * fours of x, because the processor computes no more dot products in a cycle than it loads operands. TILES lists the
 * numbers of rows that tiles have: rows are divided evenly, so if there are several tiles none has a single row. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 6, TILE_STRIPS = 2 };
#define TILES(T, name) T(name, 2) T(name, 3) T(name, 4) T(name, 5) T(name, 6)
#elif defined(__AVXVNNI__)
enum { TILE_ROWS = 6, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 2) T(name, 3) T(name, 4) T(name, 5) T(name, 6)
#elif defined(__AVX2__) || defined(SIMD_NEON)
enum { TILE_ROWS = 4, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 2) T(name, 3) T(name, 4)
#else
enum { TILE_ROWS = 1, TILE_STRIPS = 1 };
#define TILES(T, name) T(name, 1)
#endif

/* ---- rows of x --------------------------------------------------------------------------------------------------- */

/* Numbers of the blocks of a cell: block b in lane b. Lanes past the last block are zero. */
typedef struct {
  v16 scale, inverse;
  unsigned finite, fine; /* one bit for each block */
} block_scales;

/* The sum, or the largest number, of each of sixteen vectors. */
#define OF_SIXTEEN(four, sixteen, v)                                                                                   \
  sixteen(four(v[0], v[4], v[8], v[12]), four(v[1], v[5], v[9], v[13]), four(v[2], v[6], v[10], v[14]),                \
          four(v[3], v[7], v[11], v[15]))

VI block_scales scales_of(const float *x, const int blocks) {
  const v16 zero = v_set1(0.0f), limit = v_set1(QUANT_LIMIT);
  v16 largest[16], total[16];
  block_scales s = {.finite = 0};
#pragma GCC unroll 16
  for (int b = 0; b < 16; b++) largest[b] = total[b] = zero;
#pragma GCC unroll 8
  for (int b = 0; b < blocks; b++) {
    v16 first = v_load(x + QUANT_BLOCK * b), second = v_load(x + QUANT_BLOCK * b + 16);
    largest[b] = v_max(v_abs(first), v_abs(second)), total[b] = v_add(v_abs(first), v_abs(second));
    bool finite = !v_nan_mask(v_fma(second, zero, v_mul(first, zero))); /* NaN, or infinity times zero */
    s.finite |= (unsigned)finite << b;
  }
  v16 most = OF_SIXTEEN(v_largest4, v_largest16, largest);
  v16 mean = v_mul(OF_SIXTEEN(v_sums4, v_sums16, total), v_set1(1.0f / QUANT_BLOCK));
  s.scale = v_div(most, limit);
  s.inverse = v_if_gt(most, zero, v_min(v_div(limit, most), v_set1(0x1p126f)), zero);
  s.fine = v_gt_mask(most, v_mul(mean, v_set1(QUANT_FAR))) & s.finite;
  if (s.finite == (1u << blocks) - 1) return s;
  float scale[16];
  v_store(scale, s.scale);
  for (int b = 0; b < blocks; b++)
    if (!(s.finite >> b & 1)) scale[b] = NAN;
  s.scale = v_load(scale);
  return s;
}

/* Rounds the remainders of sixteen numbers, after their first digit, to finer digits. Returns the sum of these
 * digits. */
VI int32_t round_finer(const quant_format *f, v16 left, int at, quant_one *to) {
  i16 r = i_nearest(v_mul(left, v_set1(1 << QUANT_FINER)));
  i_store_i8(to->finer + at, r);
  int32_t sum = i_sum(r);
  to->finer_extra[at / f->group] -= f->zero * sum;
  return sum;
}

/* Rounds the sums of a cell's groups to 16 bits with a common scale. */
VI void round_sums(v16 sums, quant_one *to) {
  float most = v_hmax(v_abs(sums));
  int32_t whole[16] = {0};
  if (v_nan_mask(v_mul(sums, v_set1(0.0f)))) {
    to->sums = NAN;
    return;
  }
  to->sums = most / (float)QUANT_SUM_LIMIT;
  i_store(whole, i_nearest(v_mul(sums, v_set1(quant_inverse(most, QUANT_SUM_LIMIT)))));
  for (int i = 0; i < QUANT_BLOCKS; i++) to->extra[i] = quant_pair(whole[2 * i], whole[2 * i + 1]);
}

/* Rounds the blocks of a cell. All sums over lanes are computed at once, in registers. */
VI void round_blocks(const quant_format *f, const float *x, const int blocks, quant_one *to) {
  const int halves = QUANT_BLOCK / 16, per_block = QUANT_BLOCK / f->group;
  const block_scales s = scales_of(x, blocks);
  float scale[16], inverse[16], finer_sums[16] = {0};
  v16 digits[16]; /* the digits of a group, added up to sixteen numbers */
  v_store(scale, s.scale), v_store(inverse, s.inverse);
  memcpy(to->scale, scale, sizeof to->scale);
  memset(to->extra, 0, sizeof to->extra);
  to->sums = 0.0f, to->fine = s.fine;
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) digits[i] = v_set1(0.0f);
#pragma GCC unroll 8
  for (int b = 0; b < blocks; b++) {
    v16 by = v_set1(inverse[b]);
    i16 q[2];
#pragma GCC unroll 2
    for (int i = 0; i < halves; i++) {
      v16 scaled = v_mul(v_load(x + QUANT_BLOCK * b + 16 * i), by);
      q[i] = s.finite >> b & 1 ? i_nearest(scaled) : i_set1(0);
      i_store_i8(to->digit + QUANT_BLOCK * b + 16 * i, q[i]);
    }
    if (per_block == 1) digits[b] = i_to_float(i_add(q[0], q[1]));
    if (per_block == 2) digits[2 * b] = i_to_float(q[0]), digits[2 * b + 1] = i_to_float(q[1]);
  }
  if (s.fine) {
    memset(to->finer_extra, 0, sizeof to->finer_extra);
    for (int i = 0; i < blocks * halves; i++) {
      const int at = 16 * i, b = i / halves;
      v16 scaled = v_mul(v_load(x + at), v_set1(inverse[b]));
      if (s.fine >> b & 1)
        finer_sums[at / f->group] += (float)round_finer(f, v_sub(scaled, i_to_float(i_nearest(scaled))), at, to);
    }
    for (int b = 0; b < blocks; b++) to->finer_scale[b] = scale[b] * (1.0f / (1 << QUANT_FINER));
    for (int g = 0; g < blocks * per_block; g++) finer_sums[g] *= to->finer_scale[g / per_block];
  }
  v16 sums = OF_SIXTEEN(v_sums4, v_sums16, digits);
  if (f->zero) i_store(to->extra, i_nearest(v_mul(sums, v_set1((float)-f->zero))));
  if (f->scales != QUANT_F16_MIN && !quant_has_whole_minima(f)) return;
  float by_group[16];
  for (int g = 0; g < 16; g++) by_group[g] = scale[g / per_block];
  sums = v_mul(sums, per_block == 1 ? s.scale : v_load(by_group));
  if (s.fine) sums = v_add(sums, v_load(finer_sums));
  if (f->scales == QUANT_F16_MIN) i_store(to->extra, i_bits(sums));
  if (quant_has_whole_minima(f)) round_sums(sums, to);
}

VI void round_cell(const quant_format *f, const float *x, int groups, quant_one *to) {
  const int blocks = groups * f->group / QUANT_BLOCK;
  if (blocks == QUANT_BLOCKS)
    round_blocks(f, x, QUANT_BLOCKS, to);
  else
    round_blocks(f, x, blocks, to);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define EACH_ROW _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++)
#define EACH_STRIP _Pragma("GCC unroll 2") for (int s = 0; s < strips; s++)

typedef const quant_one *tile_rows[TILE_ROWS];

/* The integer sums for each row and strip of a tile. */
typedef i16 tile_sums[TILE_ROWS][TILE_STRIPS];
typedef v16 tile_floats[TILE_ROWS][TILE_STRIPS];

/* How many fours of a group i_pairs can add within 16 bits. A four adds at most 2 * 127 * the largest code to each sum.
 * 0 if i_dot4 is faster or a code is too large. */
VI int fours_of_pairs(const quant_format *f) {
  if (!SIMD_PAIRS || !quant_is_small(f)) return 0;
  const int largest = f->values == QUANT_ITSELF ? (1 << f->bits) - 1 : 2 * f->zero;
  int fours = f->group / 4;
  while (fours * 2 * QUANT_LIMIT * largest > INT16_MAX) fours /= 2;
  return fours;
}

/* sum[i] = quant_begin + the sum of code * q over group i of the block, exactly. A single group takes both halves of a
 * line in turn, so that it is loaded once. Two groups follow each other, so that only one needs registers. */
VI void sum_block(const int rows, const int strips, const bool unpacked, const quant_format *f,
                  const uint8_t *const block[TILE_STRIPS], int b, const tile_rows x, tile_sums sum[2]) {
  const int per_block = QUANT_BLOCK / f->group, together = fours_of_pairs(f), fours = f->group / 4;
  tile_sums pairs;
#pragma GCC unroll 2
  for (int i = 0; i < per_block; i++)
    EACH_ROW EACH_STRIP sum[i][r][s] = i_set1(quant_begin(f) + quant_extra(f, &x[r]->extra[b * per_block + i]));
#pragma GCC unroll 8
  for (int n = 0; n < 8; n++) {
    const int i = n / fours, nth = n % fours; /* which four of which group */
    const int half = per_block == 2 ? i : nth % 2, line = per_block == 2 ? nth : nth / 2, four = line + 4 * half;
    i16 code[TILE_STRIPS];
    EACH_STRIP code[s] = unpacked ? i_load(block[s] + QUANT_LINE * four) : quant_code(f, block[s], four);
    EACH_ROW {
      i_fours digits = i_fours_at(x[r]->digit + QUANT_BLOCK * b + 16 * half);
      EACH_STRIP {
        if (!together)
          sum[i][r][s] = i_dot4(sum[i][r][s], code[s], digits, line);
        else {
          if (nth % together == 0) pairs[r][s] = i_set1(0);
          pairs[r][s] = i_pairs(pairs[r][s], code[s], digits, line);
          if (nth % together == together - 1) sum[i][r][s] = i_add_pairs(sum[i][r][s], pairs[r][s]);
        }
      }
    }
  }
}

/* Adds the group of a block, or both of its groups, to t. */
VI void add_block(const int rows, const int strips, const bool unpacked, const uint8_t *codes, const quant_format *f,
                  const quant_cell c[TILE_STRIPS], int b, const tile_rows x, tile_floats t) {
  tile_sums sum[2];
  const uint8_t *block[TILE_STRIPS];
  EACH_STRIP block[s] =
      unpacked ? codes + (size_t)b * QUANT_BLOCK * QUANT_OUTPUTS : c[s].codes + (size_t)b * quant_block_bytes(f);
  sum_block(rows, strips, unpacked, f, block, b, x, sum);
  EACH_STRIP {
    if (!quant_is_whole(f)) {
      v16 scale = quant_scale(f, &c[s], b);
      EACH_ROW t[r][s] = v_fma(i_to_float(sum[0][r][s]), v_mul(scale, v_set1(x[r]->scale[b])), t[r][s]);
      if (f->scales != QUANT_F16_MIN) continue;
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

VI void few_rows(const int rows, const int strips, const bool unpacked, const quant_format *f, one_finer *add_finer,
                 const quant_part *p) {
  const uint8_t *weights = p->weights, *ahead = p->ahead;
  tile_rows x;
  EACH_ROW x[r] = (const quant_one *)(p->rows + (size_t)r * p->step);
  for (int left = p->left, i = 0; i < p->cells; i++, left -= QUANT_CELL) {
    quant_cell c[TILE_STRIPS];
    tile_floats t;
    EACH_STRIP c[s] = quant_cell_at(f, weights + (size_t)s * p->apart, left);
    EACH_ROW EACH_STRIP t[r][s] = one_begin_cell(f, p->sums + (size_t)r * p->ld + QUANT_OUTPUTS * s);
    for (int b = 0; b < c[0].blocks; b++) {
      ahead = quant_ask_ahead(f, p, strips, ahead);
      add_block(rows, strips, unpacked, p->codes, f, c, b, x, t);
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

#define TILE(name, rows)                                                                                               \
  static void name##_##rows(const quant_part *p) { few_rows(rows, TILE_STRIPS, false, &name, name##_finer, p); }
#if defined(__AMX_INT8__) || defined(__ARM_FEATURE_MATMUL_INT8)
#define IN_TILES(name)                                                                                                 \
  if (n > one_most_by_vectors(&name)) {                                                                                \
    V(tiles_one_##name)(m, first, count, x, step, n, sums, ld);                                                        \
    return;                                                                                                            \
  }
#else
#define IN_TILES(name)
#endif

/* Where unpacking takes a large part of a tile's instructions: measured with AVX2 (tests/bench/results/kernels.md). */
#if SIMD_PAIRS
#define UNPACKED_TILE(name, rows)                                                                                      \
  static void name##_unpacked_##rows(const quant_part *p) {                                                            \
    if (quant_is_small(&name)) few_rows(rows, 1, true, &name, name##_finer, p);                                        \
  }
#define UNPACK(name)                                                                                                   \
  TILES(UNPACKED_TILE, name)                                                                                           \
  static void name##_unpack_cell(const uint8_t *weights, int left, uint8_t *codes) {                                   \
    quant_unpack_cell(&name, weights, left, codes);                                                                    \
  }
#define UNPACKED(name) , .unpack = name##_unpack_cell, .unpacked = {TILES(QUANT_UNPACKED, name)}
#else
#define UNPACK(name)
#define UNPACKED(name)
#endif

#define DEFINE(name, type, ...)                                                                                        \
  static const quant_format name = {type, __VA_ARGS__};                                                                \
  ONE_DEFINE_FINER(name)                                                                                               \
  static void name##_alone(const quant_part *p) { few_rows(1, 1, false, &name, name##_finer, p); }                     \
  TILES(TILE, name)                                                                                                    \
  UNPACK(name)                                                                                                         \
  static const quant_kernels name##_kernels = {.rows = TILE_ROWS,                                                      \
                                               .strips = TILE_STRIPS,                                                  \
                                               .cell = sizeof(quant_one),                                              \
                                               .alone = name##_alone,                                                  \
                                               .tile = {TILES(QUANT_TILE, name)} UNPACKED(name)};                      \
  QUANT_DEFINE(name, name, type, 8, quant_one, name##_kernels, IN_TILES(name))
QUANT_FORMATS(DEFINE)
