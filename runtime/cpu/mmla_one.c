/* Products of many rows with quantized matrices by SMMLA, with rows rounded to one digit (defined in quant.h). */
#include "product_mmla.h"
#include "product_one.h"

#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)

/* Adds block b to t. */
VI void add_block(const int rows, const quant_format *f, const quant_cell *c, const int8_t *codes, int b,
                  const quant_one *const x[MMLA_ROWS], v16 t[MMLA_ROWS]) {
  const int per_block = QUANT_BLOCK / f->group;
  i16 sum[2][MMLA_ROWS];
#pragma GCC unroll 2
  for (int i = 0; i < per_block; i++) {
    const int8_t *digits[MMLA_ROWS];
    EACH_ROW digits[r] = x[r]->digit + QUANT_BLOCK * b + f->group * i;
    mmla_group(rows, f, codes + QUANT_OUTPUTS * (QUANT_BLOCK * b + f->group * i), digits, sum[i]);
  }
  const v16 scale = quant_scale(f, c, per_block * b);
  if (!quant_is_whole(f)) {
    EACH_ROW t[r] = v_fma(i_to_float(sum[0][r]), v_mul(scale, v_set1(x[r]->scale[b])), t[r]);
    if (f->scales != QUANT_F16_MIN) return;
    const v16 minimum = quant_minimum(c, b);
    EACH_ROW t[r] = v_fma(minimum, quant_float_at(&x[r]->extra[b]), t[r]);
    return;
  }
  const v16 second = per_block == 2 ? quant_scale(f, c, per_block * b + 1) : scale;
  EACH_ROW {
    v16 u = v_mul(i_to_float(sum[0][r]), scale);
    if (per_block == 2) u = v_fma(i_to_float(sum[1][r]), second, u);
    t[r] = v_fma(u, v_set1(x[r]->scale[b]), t[r]);
  }
}

VI void add_cell(const int rows, const quant_format *f, one_finer *add_finer, const quant_cell *c, const int8_t *codes,
                 const char *first, size_t step, int n, float *sums, size_t ld) {
  const quant_one *x[MMLA_ROWS];
  v16 t[MMLA_ROWS];
  EACH_ROW {
    const size_t row = (size_t)(r < n ? r : 0); /* an odd row is paired with the first one */
    x[r] = (const quant_one *)(first + row * step);
    t[r] = one_begin_cell(f, sums + row * ld);
  }
  for (int b = 0; b < c->blocks; b++) add_block(rows, f, c, codes, b, x, t);
  const quant_factors of = quant_factors_of(f, c);
  EACH_ROW {
    if (r >= n) break;
    if (x[r]->fine) t[r] = add_finer(c, x[r], t[r]);
    one_end_cell(f, &of, x[r], t[r], sums + (size_t)r * ld);
  }
}

#define KERNEL(name, rows)                                                                                             \
  static void name##_##rows(const quant_cell *c, const int8_t *codes, const char *x, size_t step, int n, float *sums,  \
                            size_t ld) {                                                                               \
    add_cell(rows, &name, name##_finer, c, codes, x, step, n, sums, ld);                                               \
  }

#define DEFINE(name, ...)                                                                                              \
  static const quant_format name = {__VA_ARGS__};                                                                      \
  ONE_DEFINE_FINER(name)                                                                                               \
  KERNEL(name, 2)                                                                                                      \
  KERNEL(name, 4)                                                                                                      \
  void V(tiles_one_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld) {                                                                                \
    mmla_walk(&name, name##_2, name##_4, sizeof(quant_one), m, first, count, x, step, n, sums, ld);                    \
  }
QUANT_FORMATS(DEFINE)
