/* The last step of a product: adds the bias, applies the activation, and writes the sums to their place. */
#include "variant.h"

#include "vmath.h"

VI v16 activate(dt_act_kind act, v16 x) {
  if (act == DT_ACT_GELU_ERF) return v_gelu_erf(x);
  if (act == DT_ACT_GELU_TANH) return v_gelu_tanh(x);
  return v_silu(x);
}

VI v16 gated(dt_act_kind act, v16 gate, v16 up) {
  return act == DT_ACT_CLAMPED ? v_clamped(gate, up) : v_mul(activate(act, gate), up);
}

VI void finish(cpu_finish how, dt_act_kind act, float scale, const float *bias, const float *sums, float *out) {
  v16 a = v_add(v_load(sums), v_load(bias)), b = v_add(v_load(sums + 16), v_load(bias + 16));
  switch (how) {
  case CPU_STORE: v_store(out, a), v_store(out + 16, b); break;
  case CPU_ADD: /* a factor of 1 changes no bit */
    v_store(out, v_fma(a, v_set1(scale), v_load(out)));
    v_store(out + 16, v_fma(b, v_set1(scale), v_load(out + 16)));
    break;
  case CPU_ACTIVATE: v_store(out, activate(act, a)), v_store(out + 16, activate(act, b)); break;
  case CPU_GATE: v_store(out, gated(act, a, b)); break;
  }
}

void V(cpu_finish_panels)(cpu_finish how, dt_act_kind act, float scale, const cpu_matrix *m, int first, int count,
                          const float *sums, size_t ld, int n, float *out, size_t ldo) {
  int width = how == CPU_GATE ? CPU_PANEL / 2 : CPU_PANEL;
  for (int r = 0; r < n; r++)
    for (int p = 0; p < count; p++)
      finish(how, act, scale, m->bias + (size_t)(first + p) * CPU_PANEL, sums + (size_t)r * ld + (size_t)p * CPU_PANEL,
             out + (size_t)r * ldo + (size_t)(first + p) * (size_t)width);
}

void V(cpu_bound)(float scale, float cap, float *x, int count) {
  for (int i = 0; i < count; i += 16) {
    v16 scaled = v_mul(v_load(x + i), v_set1(scale));
    v_store(x + i, cap != 0 ? v_cap(scaled, cap) : scaled);
  }
}
