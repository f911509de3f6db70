/* Shared by both kinds of products with quantized matrices: a few rows at a time, and in AMX tiles. */
#ifndef DT_CPU_QUANT_TILES_H
#define DT_CPU_QUANT_TILES_H

#include "format.h"
#include "quant.h"
#include "simd.h"

/* The end of a cell for one row: acc and its groups' t, scales and minima put together. */
VI v16 quant_add_cell(const quant_format *f, const quant_cell *c, v16 acc, v16 t, float scale, const int32_t *extra) {
  v16 sx = v_set1(scale);
  if (!quant_is_whole(f)) return v_fma(t, sx, acc);
  acc = v_fma(t, v_mul(v_load_f16((const uint16_t *)c->d), sx), acc);
  if (f->scales == QUANT_WHOLE) return acc;
  i16 sum = i_set1(0);
  for (int g = 0; g < c->groups; g += 2) sum = i_dot2(sum, i_load_pairs(c->minima + QUANT_OUTPUTS * g), extra[g]);
  return v_fma(i_to_float(sum), v_mul(v_load_f16((const uint16_t *)c->dmin), v_set1(-scale)), acc);
}

/* Rows above which AMX tiles are faster: a tile takes as long for few rows as for sixteen. Measured with `calibrate` on two
 * cores of an Intel Xeon: 8 rows take 66 ms by vectors and 92 in tiles (1.5B, Q4_K and Q6_K), 14 rows 105 and 102. */
enum { TILES_FROM = 12 };

#define QUANT_DECLARE_TILES(name, ...)                                                                                 \
  void V(quant_tiles_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,             \
                             float *sums, size_t ld);
QUANT_FORMATS(QUANT_DECLARE_TILES)

#endif
