/* Kernels over arrays, and the sum with which the read bandwidth is measured. */
#include "variant.h"

#include "vmath.h"

float V(cpu_stream)(const float *p, size_t n) {
  v16 sum[8];
  for (int j = 0; j < 8; j++) sum[j] = v_set1(0.0f);
  for (size_t i = 0; i + 128 <= n; i += 128)
    for (int j = 0; j < 8; j++) sum[j] = v_add(sum[j], v_load(p + i + 16 * j));
  for (int j = 1; j < 8; j++) sum[0] = v_add(sum[0], sum[j]);
  return v_sum(sum[0]);
}

void V(cpu_exp)(const float *x, size_t n, float *y) {
  for (size_t i = 0; i < n; i += 16) v_store(y + i, v_exp(v_load(x + i)));
}

void V(cpu_log)(const float *x, size_t n, float *y) {
  for (size_t i = 0; i < n; i += 16) v_store(y + i, v_log(v_load(x + i)));
}

void V(cpu_erf)(const float *x, size_t n, float *y) {
  for (size_t i = 0; i < n; i += 16) v_store(y + i, v_erf(v_load(x + i)));
}

void V(cpu_activate)(dt_act_kind act, const float *x, size_t n, float *y) {
  switch (act) {
  case DT_ACT_GELU_ERF:
    for (size_t i = 0; i < n; i += 16) v_store(y + i, v_gelu_erf(v_load(x + i)));
    break;
  case DT_ACT_GELU_TANH:
    for (size_t i = 0; i < n; i += 16) v_store(y + i, v_gelu_tanh(v_load(x + i)));
    break;
  case DT_ACT_SILU:
    for (size_t i = 0; i < n; i += 16) v_store(y + i, v_silu(v_load(x + i)));
    break;
  case DT_ACT_CLAMPED: /* its second input, which only gates have, is 0 here */
    for (size_t i = 0; i < n; i += 16) v_store(y + i, v_clamped(v_load(x + i), v_set1(0.0f)));
    break;
  }
}
