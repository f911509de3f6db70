/* exp, ln, erf and the activations on sixteen lanes: polynomials with explicit fma. They are minimax fits whose
 * coefficients were rounded to f32 one by one. tests/unit/test_cpu_kernels.c states their errors against libm in double
 * precision, and tests them. */
#ifndef DT_CPU_VMATH_H
#define DT_CPU_VMATH_H

#include "simd.h"

#define VMATH_EXP_MIN -87.3f /* smaller arguments are raised to this: exp gives 2^-126, the smallest normal number */
#define VMATH_EXP_MAX 88.0f

/* exp(x) for VMATH_EXP_MIN <= x <= VMATH_EXP_MAX, with an error of at most 1.1 ulp; undefined for NaN. x = n ln 2 + r:
 * adding 1.5 * 2^23 rounds x / ln 2 to the integer n and leaves it in the low bits of the mantissa. */
VI v16 v_exp_within(v16 x) {
  const v16 magic = v_set1(12582912.0f);
  v16 t = v_fma(x, v_set1(1.44269504f), magic);
  v16 n = v_sub(t, magic);
  v16 r = v_fma(n, v_set1(-0.693145752f), x);
  r = v_fma(n, v_set1(-1.42860677e-6f), r);
  v16 p = v_set1(1.381869777e-03f);
  p = v_fma(p, r, v_set1(8.368715644e-03f));
  p = v_fma(p, r, v_set1(4.166829214e-02f));
  p = v_fma(p, r, v_set1(1.666652113e-01f));
  p = v_fma(p, r, v_set1(4.999999404e-01f));
  p = v_fma(v_mul(p, r), r, r);
  return v_scale2(v_add(p, v_set1(1.0f)), t);
}

/* exp(x). An x outside the bounds counts as the nearer bound. NaN gives NaN. */
VI v16 v_exp(v16 x) {
  return v_keep_nan(x, v_exp_within(v_min(v_set1(VMATH_EXP_MAX), v_max(v_set1(VMATH_EXP_MIN), x))));
}

/* ln(x) of a positive normal number, with an error of at most 1.1 ulp. x = m 2^n with m near 1; the polynomial
 * approximates ln m. */
VI v16 v_log(v16 x) {
  v16 m, n = v_split2(x, &m);
  v16 f = v_sub(m, v_set1(1.0f)), s = v_mul(f, f);
  v16 p = v_set1(-7.636940479e-02f);
  p = v_fma(p, f, v_set1(1.276248544e-01f));
  p = v_fma(p, f, v_set1(-1.315955073e-01f));
  p = v_fma(p, f, v_set1(1.420153975e-01f));
  p = v_fma(p, f, v_set1(-1.662341058e-01f));
  p = v_fma(p, f, v_set1(2.000124305e-01f));
  p = v_fma(p, f, v_set1(-2.500081956e-01f));
  p = v_fma(p, f, v_set1(3.333333135e-01f));
  v16 low = v_fma(v_mul(s, f), p, v_mul(n, v_set1(1.42860677e-6f)));
  v16 high = v_fma(s, v_set1(-0.5f), low);
  return v_fma(n, v_set1(0.693145752f), v_add(f, high));
}

/* erf(x), with an error of at most 1.5 ulp: an odd polynomial near 0; further out 1 - exp(-(t + t Q(t))) with t =
 * |x|. */
VI v16 v_erf(v16 x) {
  v16 t = v_abs(x), s = v_mul(x, x);
  v16 p = v_set1(-5.959501723e-04f);
  p = v_fma(p, s, v_set1(4.987341352e-03f));
  p = v_fma(p, s, v_set1(-2.676296234e-02f));
  p = v_fma(p, s, v_set1(1.128173098e-01f));
  p = v_fma(p, s, v_set1(-3.761248887e-01f));
  p = v_fma(p, s, v_set1(1.283791512e-01f));
  v16 near = v_fma(p, x, x);

  v16 u = v_min(v_set1(4.0f), t);
  v16 q = v_set1(1.161062664e-05f);
  q = v_fma(q, u, v_set1(-3.266078420e-04f));
  q = v_fma(q, u, v_set1(3.657958237e-03f));
  q = v_fma(q, u, v_set1(-2.379491739e-02f));
  q = v_fma(q, u, v_set1(1.062751114e-01f));
  q = v_fma(q, u, v_set1(6.351281404e-01f));
  q = v_fma(q, u, v_set1(1.286542118e-01f));
  v16 h = v_fma(q, u, u);
  v16 far = v_copysign(v_sub(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), h))), x);
  return v_if_gt(t, v_set1(0.93f), far, near); /* NaN takes the near side and stays NaN */
}

VI v16 v_gelu_erf(v16 x) { /* x/2 (1 + erf(x / sqrt 2)) */
  v16 e = v_erf(v_mul(x, v_set1(0.707106781f)));
  return v_mul(v_mul(x, v_set1(0.5f)), v_add(v_set1(1.0f), e));
}

/* cap * tanh(x / cap) = cap * (1 - 2 / (1 + exp(2x / cap))), with an error of at most 2.1e-7 cap */
VI v16 v_cap(v16 x, float cap) {
  v16 e = v_exp(v_mul(v_div(x, v_set1(cap)), v_set1(2.0f)));
  v16 tanh = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(e, v_set1(1.0f))));
  return v_mul(tanh, v_set1(cap));
}

VI v16 v_silu(v16 x) { /* x / (1 + exp(-x)) */
  return v_div(x, v_add(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), x))));
}

VI v16 v_clamped(v16 gate, v16 up) { /* (u + 1) g / (1 + exp(-1.702 g)), g and u limited to 7: see DT_ACT_CLAMPED */
  v16 limit = v_set1(7.0f), g = v_keep_nan(gate, v_min(limit, gate));
  v16 u = v_keep_nan(up, v_min(limit, v_max(v_set1(-7.0f), up)));
  v16 e = v_exp(v_mul(g, v_set1(-1.702f)));
  return v_mul(v_add(u, v_set1(1.0f)), v_div(g, v_add(e, v_set1(1.0f))));
}

VI v16 v_gelu_tanh(v16 x) { /* x/2 (1 + tanh(u)) = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3) */
  v16 minus_2u = v_mul(x, v_fma(v_mul(x, x), v_set1(-0.0713548163f), v_set1(-1.59576912f)));
  return v_div(x, v_add(v_set1(1.0f), v_exp(minus_2u)));
}

#endif
