/* Shared by all products with rows of two digits: by vectors for a few rows at a time, in AMX tiles or by SMMLA for
 * more. */
#ifndef DT_CPU_PRODUCT_TWO_H
#define DT_CPU_PRODUCT_TWO_H

#include "product_quant.h"

/* Ends a cell for one row: adds the t of its groups to acc, with scales and minima. */
VI v16 two_end_cell(const quant_format *f, const quant_factors *of, v16 acc, v16 t, const quant_two *x) {
  v16 sx = v_set1(x->scale);
  if (!quant_is_whole(f)) return v_fma(t, sx, acc);
  acc = v_fma(t, v_mul(of->d, sx), acc);
  if (f->scales == QUANT_WHOLE) return acc;
  return v_fma(quant_whole_minima(f, of, x->extra), v_mul(of->dmin, v_set1(-x->scale)), acc);
}

/* The number of rows above which AMX tiles are faster than vectors; a tile takes as long for few rows as for sixteen.
 * Measured with `dtrun run costs` on two cores of an Intel Xeon (1.5B, Q4_K and Q6_K): 8 rows take 66 ms by vectors and
 * 92 ms in tiles, 14 rows 105 ms and 102 ms. */
#if !defined(SIMD_NEON)
enum { TILES_TWO_FROM = 12 };
#else /* estimated from instruction counts, not measured: SMMLA is faster from the second tile of vectors on */
enum { TILES_TWO_FROM = 2 };
#endif

#define TILES_TWO_DECLARE(name, ...)                                                                                   \
  void V(tiles_two_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld);
QUANT_FORMATS(TILES_TWO_DECLARE)

#endif
