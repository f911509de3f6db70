/* The kernels of delta layers: see delta_layer.h. */
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

/* softplus(x) = ln(1 + e^x), which in f32 equals x for x above 20 */
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

enum { ROOM = (DT_DELTA_ROWS + 16) / 16 * 16 }; /* room for a row's ancestors and its base */

/* decay[j] = e to the sum of the rates after ancestor j up to the row itself; decay[n] is the same from the base on.
 * Sums begin at the base. */
VI void decays(const cpu_delta_head *h, const float *const *row, int n, float own, float decay[ROOM]) {
  float sum = 0.0f;
  for (int j = 0; j < n; j++) decay[j] = sum += row[j][h->rate_at];
  sum += own;
  for (int j = 0; j < n; j++) decay[j] = sum - decay[j];
  decay[n] = sum;
  for (int j = n + 1; j < ROOM; j++) decay[j] = 0.0f;
  for (int j = 0; j < ROOM; j += 16) v_store(decay + j, v_exp(v_load(decay + j)));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The number of rows, and of vectors of columns, whose sums stay in registers. The rows share what is loaded of the
 * base and of their ancestors. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 4, MOST_LANES = 4 };
#define LANES(rows) ((rows) > 2 ? 2 : 4)
#elif defined(__AVX2__) || defined(SIMD_NEON)
enum { TILE_ROWS = 2, MOST_LANES = 2 };
#define LANES(rows) ((rows) > 1 ? 1 : 2)
#else
enum { TILE_ROWS = 1, MOST_LANES = 1 };
#define LANES(rows) 1
#endif
#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
#define EACH_LANE _Pragma("GCC unroll 4") for (int l = 0; l < lanes; l++)

/* The factors by which a row's sums take each ancestor's delta, the base (decay[n]) and the row's own delta. */
typedef struct {
  float decay[ROOM], by_k[ROOM], by_q[ROOM], own;
} row_factors;

/* Computes the factors of ancestors from..from+15: the products of sixteen keys with k and q. */
VI void find_factors(const cpu_delta_head *h, const cpu_delta_row *x, int from, row_factors *f) {
  const float *key[16];
  v16 by_k[4], by_q[4];
  for (int i = 0; i < 16; i++) key[i] = x->row[from + i < x->n ? from + i : from] + h->key_at;
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    v16 k[4], q[4];
    for (int i = 0; i < 4; i++) k[i] = q[i] = v_set1(0.0f);
    for (int d = 0; d < h->key_dim; d += 16) {
      v16 own_k = v_load(x->k + d), own_q = v_load(x->q + d);
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        v16 of = v_load(key[j + 4 * i] + d);
        k[i] = v_fma(of, own_k, k[i]), q[i] = v_fma(of, own_q, q[i]);
      }
    }
    by_k[j] = v_sums4(k[0], k[1], k[2], k[3]), by_q[j] = v_sums4(q[0], q[1], q[2], q[3]);
  }
  v16 decay = v_load(f->decay + from);
  v_store(f->by_k + from, v_mul(decay, v_sums16(by_k[0], by_k[1], by_k[2], by_k[3])));
  v_store(f->by_q + from, v_mul(decay, v_sums16(by_q[0], by_q[1], by_q[2], by_q[3])));
}

/* The sums of a row: s with its key, from which its delta is computed, and y with its query. */
typedef struct {
  v16 s[MOST_LANES], y[MOST_LANES];
} row_sums;

VI void add(const int lanes, float k, float q, const v16 *of, row_sums *to) {
  v16 by_k = v_set1(k), by_q = v_set1(q);
  EACH_LANE to->s[l] = v_fma(by_k, of[l], to->s[l]), to->y[l] = v_fma(by_q, of[l], to->y[l]);
}

/* Computes 16 * `lanes` numbers, from `at` on, of the deltas and of y of some rows. The rows share their first `shared`
 * ancestors. A row may be an ancestor of a later one. */
VI void columns(const int rows, const int lanes, const cpu_delta_head *h, const float *base, const cpu_delta_row *x,
                const row_factors *f, int shared, int at) {
  v16 of[MOST_LANES];
  row_sums sum[TILE_ROWS];
  EACH_ROW EACH_LANE sum[r].s[l] = sum[r].y[l] = v_set1(0.0f);
  if (base) {
    for (int i = 0; i < h->key_dim; i++) {
      EACH_LANE of[l] = v_load(base + (size_t)i * (size_t)h->value_dim + at + 16 * l);
      EACH_ROW add(lanes, x[r].k[i], x[r].q[i], of, &sum[r]);
    }
    EACH_ROW {
      v16 decay = v_set1(f[r].decay[x[r].n]);
      EACH_LANE sum[r].s[l] = v_mul(sum[r].s[l], decay), sum[r].y[l] = v_mul(sum[r].y[l], decay);
    }
  }
  for (int j = 0; j < shared; j++) {
    EACH_LANE of[l] = v_load(x->row[j] + h->delta_at + at + 16 * l);
    EACH_ROW add(lanes, f[r].by_k[j], f[r].by_q[j], of, &sum[r]);
  }
  EACH_ROW {
    for (int j = shared; j < x[r].n; j++) {
      EACH_LANE of[l] = v_load(x[r].row[j] + h->delta_at + at + 16 * l);
      add(lanes, f[r].by_k[j], f[r].by_q[j], of, &sum[r]);
    }
    EACH_LANE {
      v16 u = v_mul(v_set1(x[r].strength), v_sub(v_load(x[r].v + at + 16 * l), sum[r].s[l]));
      v_store(x[r].own + h->delta_at + at + 16 * l, u);
      v_store(x[r].y + at + 16 * l, v_fma(v_set1(f[r].own), u, sum[r].y[l]));
    }
  }
}

/* The number of ancestors that all rows share. */
static int shared_by(const cpu_delta_row *x, int rows) {
  int n = x->n;
  for (int r = 1; r < rows; r++) {
    int same = 0;
    while (same < n && same < x[r].n && x[r].row[same] == x->row[same]) same++;
    n = same;
  }
  return n;
}

VI void tile(const int rows, const cpu_delta_head *h, const float *base, const cpu_delta_row *x, const row_factors *f) {
  const int wide = LANES(rows), shared = shared_by(x, rows);
  int at = 0;
  for (; at + 16 * wide <= h->value_dim; at += 16 * wide) columns(rows, wide, h, base, x, f, shared, at);
  for (; at < h->value_dim; at += 16) columns(rows, 1, h, base, x, f, shared, at);
}

static void tile_of(int rows, const cpu_delta_head *h, const float *base, const cpu_delta_row *x,
                    const row_factors *f) {
  if (rows == 1) tile(1, h, base, x, f);
  if (TILE_ROWS > 1 && rows == 2) tile(2, h, base, x, f);
  if (TILE_ROWS > 2 && rows == 3) tile(3, h, base, x, f);
  if (TILE_ROWS > 3 && rows == 4) tile(4, h, base, x, f);
}

/* Sixteen keys are read for all rows while they are in the L1 cache. */
void V(cpu_delta_rows)(const cpu_delta_head *h, const float *base, const cpu_delta_row *x, int n) {
  row_factors f[CPU_DELTA_TOGETHER];
  int most = 0;
  for (int r = 0; r < n; r++) {
    decays(h, x[r].row, x[r].n, x[r].own[h->rate_at], f[r].decay);
    f[r].own = dot(x[r].k, x[r].q, h->key_dim);
    if (x[r].n > most) most = x[r].n;
  }
  for (int from = 0; from < most; from += 16)
    for (int r = 0; r < n; r++)
      if (from < x[r].n) find_factors(h, &x[r], from, &f[r]);
  for (int r = 0; r < n; r += TILE_ROWS) tile_of(n - r < TILE_ROWS ? n - r : TILE_ROWS, h, base, x + r, f + r);
}

/* ---- bases ------------------------------------------------------------------------------------------------------- */

enum { KEYS = 4 }; /* keys whose sums share what is loaded of a row's delta */

/* Computes sixteen numbers of each of KEYS keys. by[j][key..] are the factors by which they take row j's delta. */
VI void move_base(const cpu_delta_head *h, const float *before, float decay, const float *const row[DT_DELTA_STEP],
                  int key, float (*by)[16], int at, float *base) {
  v16 sum[KEYS];
#pragma GCC unroll 4
  for (int i = 0; i < KEYS; i++) {
    size_t to = (size_t)i * (size_t)h->value_dim + (size_t)at;
    sum[i] = before ? v_mul(v_set1(decay), v_load(before + to)) : v_set1(0.0f);
  }
  for (int j = 0; j < DT_DELTA_STEP; j++) {
    v16 u = v_load(row[j] + h->delta_at + at);
#pragma GCC unroll 4
    for (int i = 0; i < KEYS; i++) sum[i] = v_fma(v_set1(by[j][key + i]), u, sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < KEYS; i++) v_store(base + (size_t)i * (size_t)h->value_dim + (size_t)at, sum[i]);
}

void V(cpu_delta_base)(const cpu_delta_head *h, const float *before, const float *const row[DT_DELTA_STEP],
                       float *base) {
  float decay[ROOM], by[DT_DELTA_STEP][16];
  const int last = DT_DELTA_STEP - 1;
  decays(h, row, last, row[last][h->rate_at], decay);
  float of_base = decay[last];
  decay[last] = 1.0f; /* the last row itself does not decay */
  for (int key = 0; key < h->key_dim; key += KEYS) {
    if (key % 16 == 0)
      for (int j = 0; j <= last; j++) v_store(by[j], v_mul(v_set1(decay[j]), v_load(row[j] + h->key_at + (size_t)key)));
    size_t to = (size_t)key * (size_t)h->value_dim;
    for (int at = 0; at < h->value_dim; at += 16)
      move_base(h, before ? before + to : NULL, of_base, row, key % 16, by, at, base + to);
  }
}
