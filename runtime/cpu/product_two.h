/* Shared by all products of two digits: a few rows at a time, and more in AMX tiles or by SMMLA. */
#ifndef DT_CPU_PRODUCT_TWO_H
#define DT_CPU_PRODUCT_TWO_H

#include "product_quant.h"

/* The end of a cell for one row: adds its groups' t, with scales and minima, to acc. */
VI v16 two_end_cell(const quant_format *f, const quant_factors *of, v16 acc, v16 t, const quant_two *x) {
  v16 sx = v_set1(x->scale);
  if (!quant_is_whole(f)) return v_fma(t, sx, acc);
  acc = v_fma(t, v_mul(of->d, sx), acc);
  if (f->scales == QUANT_WHOLE) return acc;
  return v_fma(quant_whole_minima(f, of, x->extra), v_mul(of->dmin, v_set1(-x->scale)), acc);
}

/* Number of rows above which AMX tiles are faster: a tile takes as long for few rows as for sixteen. Measured with
 * `calibrate` on two cores of an Intel Xeon (1.5B, Q4_K and Q6_K): 8 rows take 66 ms by vectors and 92 ms in tiles, 14
 * rows 105 and 102 ms. */
#if !defined(SIMD_NEON)
enum { TILES_TWO_FROM = 12 };
#else /* SMMLA pays from the second tile by vectors on, by counts of instructions: no machine has measured it */
enum { TILES_TWO_FROM = 2 };
#endif

#define TILES_TWO_DECLARE(name, ...)                                                                                   \
  void V(tiles_two_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld);
QUANT_FORMATS(TILES_TWO_DECLARE)

#endif
