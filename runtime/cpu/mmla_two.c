/* Products of many rows with quantized matrices by SMMLA, with rows rounded to two digits (defined in quant.h). */
#include "product_mmla.h"
#include "product_two.h"

#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)

/* Adds group g to t. */
VI void add_group(const int rows, const quant_format *f, const quant_cell *c, const int8_t *codes, int g,
                  const quant_two *const x[MMLA_ROWS], v16 t[MMLA_ROWS]) {
  const int8_t *digits[MMLA_ROWS], *at = codes + QUANT_OUTPUTS * f->group * g;
  i16 high[MMLA_ROWS], low[MMLA_ROWS];
  EACH_ROW digits[r] = x[r]->digits + 2 * f->group * g;
  mmla_group(rows, f, at, digits, high);
  EACH_ROW digits[r] += f->group;
  mmla_group(rows, f, at, digits, low);
  const v16 scale = quant_scale(f, c, g);
  EACH_ROW t[r] = v_fma(i_to_float(i_add(i_left(high[r], f->shift), low[r])), scale, t[r]);
  if (f->scales != QUANT_F16_MIN) return;
  const v16 minimum = quant_minimum(c, g);
  EACH_ROW t[r] = v_fma(quant_float_at(&x[r]->extra[g]), minimum, t[r]);
}

VI void add_cell(const int rows, const quant_format *f, const quant_cell *c, const int8_t *codes, const char *first,
                 size_t step, int n, float *sums, size_t ld) {
  const quant_two *x[MMLA_ROWS];
  v16 t[MMLA_ROWS];
  EACH_ROW {
    x[r] = (const quant_two *)(first + (size_t)(r < n ? r : 0) * step); /* an odd row is paired with the first */
    t[r] = v_set1(0.0f);
  }
  for (int g = 0; g < c->groups; g++) add_group(rows, f, c, codes, g, x, t);
  const quant_factors of = quant_factors_of(f, c);
  EACH_ROW {
    if (r >= n) break;
    float *acc = sums + (size_t)r * ld;
    v_store(acc, two_end_cell(f, &of, v_load(acc), t[r], x[r]));
  }
}

#define KERNEL(name, rows)                                                                                             \
  static void name##_##rows(const quant_cell *c, const int8_t *codes, const char *x, size_t step, int n, float *sums,  \
                            size_t ld) {                                                                               \
    add_cell(rows, &name, c, codes, x, step, n, sums, ld);                                                             \
  }

#define DEFINE(name, ...)                                                                                              \
  static const quant_format name = {__VA_ARGS__};                                                                      \
  KERNEL(name, 2)                                                                                                      \
  KERNEL(name, 4)                                                                                                      \
  void V(tiles_two_##name)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld) {                                                                                \
    mmla_walk(&name, name##_2, name##_4, sizeof(quant_two), m, first, count, x, step, n, sums, ld);                    \
  }
QUANT_FORMATS(DEFINE)
