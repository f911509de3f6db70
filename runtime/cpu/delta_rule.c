/* The numbers of delta layers: see delta.h. */
#include "variant.h"

#include "vmath.h"

VI v16 sigmoid(v16 x) { return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), x)))); }

void V(cpu_gate)(const float *x, int n, float *y) {
  for (int i = 0; i < n; i += 16) v_store(y + i, v_mul(v_load(y + i), sigmoid(v_load(x + i))));
}

void V(cpu_gate_silu)(const float *x, int n, float *y) {
  for (int i = 0; i < n; i += 16) v_store(y + i, v_mul(v_load(y + i), v_silu(v_load(x + i))));
}

void V(cpu_unit)(float *x, int n, float scale) {
  v16 squares = v_set1(0.0f);
  for (int i = 0; i < n; i += 16) squares = v_fma(v_load(x + i), v_load(x + i), squares);
  v16 by = v_set1(scale / sqrtf(v_sum(squares) + 1e-6f));
  for (int i = 0; i < n; i += 16) v_store(x + i, v_mul(v_load(x + i), by));
}

void V(cpu_delta_mix)(const float *const tap[DT_DELTA_TAPS], const float *weight, size_t ld, int n, float *out) {
  for (int i = 0; i < n; i += 16) {
    v16 sum = v_set1(0.0f);
    for (int t = 0; t < DT_DELTA_TAPS; t++)
      if (tap[t]) sum = v_fma(v_load(weight + (size_t)t * ld + (size_t)i), v_load(tap[t] + i), sum);
    v_store(out + i, v_silu(sum));
  }
}

/* softplus(x) = ln(1 + e^x), which is x above 20 in f32 */
void V(cpu_delta_rates)(const float *a, const float *shift, const float *decay, int n, float *rate, float *b) {
  for (int i = 0; i < n; i += 16) {
    v16 x = v_add(v_load(a + i), v_load(shift + i)), cut = v_set1(20.0f);
    v16 low = v_log(v_add(v_set1(1.0f), v_exp(v_min(x, cut))));
    v_store(rate + i, v_mul(v_load(decay + i), v_keep_nan(x, v_if_gt(x, cut, x, low))));
    v_store(b + i, sigmoid(v_load(b + i)));
  }
}

VI float dot(const float *a, const float *b, int n) {
  v16 sum = v_set1(0.0f);
  for (int i = 0; i < n; i += 16) sum = v_fma(v_load(a + i), v_load(b + i), sum);
  return v_sum(sum);
}

enum { ROOM = (CPU_DELTA_ROWS + 16) / 16 * 16 }; /* a row's ancestors and its base */

/* decay[j]: e to the sum of the rates after ancestor j up to the row; decay[n]: from the base on. Sums begin at the base. */
VI void decays(const cpu_delta_head *h, const float *const *row, int n, float own, float decay[ROOM]) {
  float sum = 0.0f;
  for (int j = 0; j < n; j++) decay[j] = sum += row[j][h->rate_at];
  sum += own;
  for (int j = 0; j < n; j++) decay[j] = sum - decay[j];
  decay[n] = sum;
  for (int j = n + 1; j < ROOM; j++) decay[j] = 0.0f;
  for (int j = 0; j < ROOM; j += 16) v_store(decay + j, v_exp(v_load(decay + j)));
}

/* 16 * `lanes` numbers of the delta and of y, from `at` on. */
VI void columns(const cpu_delta_head *h, const cpu_delta_row *r, const float *by_k, const float *by_q, float decay,
                float own, int at, const int lanes) {
  v16 s[4], y[4];
  for (int l = 0; l < lanes; l++) s[l] = y[l] = v_set1(0.0f);
  if (r->base) {
    for (int i = 0; i < h->key_dim; i++) {
      const float *base = r->base + (size_t)i * (size_t)h->value_dim + (size_t)at;
      v16 k = v_set1(r->k[i]), q = v_set1(r->q[i]);
      for (int l = 0; l < lanes; l++) {
        v16 b = v_load(base + 16 * l);
        s[l] = v_fma(k, b, s[l]), y[l] = v_fma(q, b, y[l]);
      }
    }
    for (int l = 0; l < lanes; l++) s[l] = v_mul(s[l], v_set1(decay)), y[l] = v_mul(y[l], v_set1(decay));
  }
  for (int j = 0; j < r->n; j++) {
    const float *u = r->row[j] + h->delta_at + at;
    v16 k = v_set1(by_k[j]), q = v_set1(by_q[j]);
    for (int l = 0; l < lanes; l++) {
      v16 d = v_load(u + 16 * l);
      s[l] = v_fma(k, d, s[l]), y[l] = v_fma(q, d, y[l]);
    }
  }
  for (int l = 0; l < lanes; l++) {
    v16 u = v_mul(v_set1(r->strength), v_sub(v_load(r->v + at + 16 * l), s[l]));
    v_store(r->own + h->delta_at + at + 16 * l, u);
    v_store(r->y + at + 16 * l, v_fma(v_set1(own), u, y[l]));
  }
}

void V(cpu_delta_one)(const cpu_delta_head *h, const cpu_delta_row *r) {
  float decay[ROOM], by_k[ROOM], by_q[ROOM];
  decays(h, r->row, r->n, r->own[h->rate_at], decay);
  for (int j = 0; j < r->n; j++) {
    const float *key = r->row[j] + h->key_at;
    by_k[j] = decay[j] * dot(key, r->k, h->key_dim);
    by_q[j] = decay[j] * dot(key, r->q, h->key_dim);
  }
  float own = dot(r->k, r->q, h->key_dim);
  int at = 0;
  for (; at + 64 <= h->value_dim; at += 64) columns(h, r, by_k, by_q, decay[r->n], own, at, 4);
  for (; at < h->value_dim; at += 16) columns(h, r, by_k, by_q, decay[r->n], own, at, 1);
}

void V(cpu_delta_base)(const cpu_delta_head *h, const float *before, const float *const row[CPU_DELTA_STEP],
                       float *base) {
  float decay[ROOM];
  const int last = CPU_DELTA_STEP - 1;
  decays(h, row, last, row[last][h->rate_at], decay);
  float of_base = decay[last];
  decay[last] = 1.0f; /* of the last row itself */
  for (int i = 0; i < h->key_dim; i++)
    for (int at = 0; at < h->value_dim; at += 16) {
      size_t to = (size_t)i * (size_t)h->value_dim + (size_t)at;
      v16 sum = before ? v_mul(v_set1(of_base), v_load(before + to)) : v_set1(0.0f);
      for (int j = 0; j <= last; j++)
        sum = v_fma(v_set1(decay[j] * row[j][h->key_at + (size_t)i]), v_load(row[j] + h->delta_at + at), sum);
      v_store(base + to, sum);
    }
}
