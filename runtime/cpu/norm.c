/* Layer norm and RMS norm of one row: sixteen partial sums (index modulo 16), added in the order of v_sum. */
#include "variant.h"

void V(cpu_norm)(dt_norm_kind kind, const float *x, const float *weight, const float *bias, int hidden, float eps,
                 float *y) {
  int whole = hidden & ~15, rest = hidden & 15; /* arrays have room for a whole last vector */
  v16 mean = v_set1(0.0f);
  if (kind == DT_NORM_LAYER) {
    v16 sum = v_set1(0.0f);
    for (int i = 0; i < whole; i += 16) sum = v_add(sum, v_load(x + i));
    if (rest) sum = v_add(sum, v_first(v_load(x + whole), rest));
    mean = v_set1(v_sum(sum) / (float)hidden);
  }
  v16 squares = v_set1(0.0f);
  for (int i = 0; i < whole; i += 16) {
    v16 d = v_sub(v_load(x + i), mean);
    squares = v_fma(d, d, squares);
  }
  if (rest) {
    v16 d = v_first(v_sub(v_load(x + whole), mean), rest);
    squares = v_fma(d, d, squares);
  }
  v16 scale = v_set1(1.0f / sqrtf(v_sum(squares) / (float)hidden + eps));
  for (int i = 0; i < hidden; i += 16) {
    v16 d = v_mul(v_sub(v_load(x + i), mean), scale), w = v_load(weight + i);
    v_store(y + i, bias ? v_fma(d, w, v_load(bias + i)) : v_mul(d, w));
  }
}
