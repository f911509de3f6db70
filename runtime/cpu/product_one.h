/* Shared by all products with rows of one digit: by vectors for a few rows at a time, in AMX tiles or by SMMLA for
 * more. */
#ifndef DT_CPU_PRODUCT_ONE_H
#define DT_CPU_PRODUCT_ONE_H

#include "product_quant.h"

/* What the sum of a cell begins with. With f16 scales it is the sum of the cells before, since no factor of the cell
 * follows. */
VI v16 one_begin_cell(const quant_format *f, const float *acc) {
  return quant_is_whole(f) ? v_set1(0.0f) : v_load(acc);
}

/* Returns t plus the finer digits of a row, if the row has any. */
VI v16 one_add_finer(const quant_format *f, const quant_cell *c, const quant_one *x, v16 t) {
  const int per_block = QUANT_BLOCK / f->group;
  for (int b = 0; b < c->blocks; b++) {
    if (!(x->fine >> b & 1)) continue;
    const uint8_t *block = c->codes + (size_t)b * quant_block_bytes(f);
    v16 u = v_set1(0.0f), scale = u;
#pragma GCC unroll 2
    for (int i = 0; i < per_block; i++) {
      const int group = b * per_block + i, fours = f->group / 4;
      i16 sum = i_set1(quant_extra(f, &x->finer_extra[group]));
#pragma GCC unroll 8
      for (int four = i * fours; four < (i + 1) * fours; four++)
        sum = i_dot4(sum, quant_code(f, block, four), i_fours_at(x->finer + QUANT_BLOCK * b + four / 4 * 16), four % 4);
      scale = quant_scale(f, c, group);
      u = quant_is_whole(f) ? v_fma(i_to_float(sum), scale, u) : i_to_float(sum);
    }
    v16 sx = v_set1(x->finer_scale[b]);
    t = v_fma(u, quant_is_whole(f) ? sx : v_mul(scale, sx), t);
  }
  return t;
}

/* The type of one_add_finer for one format, to be called when there are few rows. */
typedef v16 one_finer(const quant_cell *c, const quant_one *x, v16 t);
#define ONE_DEFINE_FINER(name)                                                                                         \
  static __attribute__((noinline)) v16 name##_finer(const quant_cell *c, const quant_one *x, v16 t) {                  \
    return one_add_finer(&name, c, x, t);                                                                              \
  }

VI void one_end_cell(const quant_format *f, const quant_factors *of, const quant_one *x, v16 t, float *acc) {
  if (quant_is_whole(f)) t = v_fma(t, of->d, v_load(acc));
  if (quant_has_whole_minima(f)) t = v_fma(quant_whole_minima(f, of, x->extra), v_mul(of->dmin, v_set1(-x->sums)), t);
  v_store(acc, t);
}

/* The number of rows above which AMX tiles are faster than vectors: 12, or 16 if a block has two groups, whose sums
 * must leave the tiles separately. Measured on a Xeon in microseconds, by vectors and in tiles
 * (tests/bench/bench_products.c): Q4_K 12 rows 984 and 959, 16 rows 1240 and 1000; Q6_K 16 rows 1395 and 1462, 32 rows
 * 2600 and 2399. */
#if !defined(SIMD_NEON)
VI int one_most_by_vectors(const quant_format *f) { return f->group < QUANT_BLOCK ? 16 : 12; }
#else /* estimated from instruction counts, not measured: SMMLA is faster from the second tile of vectors on */
VI int one_most_by_vectors(const quant_format *f) { return (void)f, 4; }
#endif

#define TILES_ONE_DECLARE(name, ...)                                                                                   \
  void V(tiles_one_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld);
QUANT_FORMATS(TILES_ONE_DECLARE)

#endif
