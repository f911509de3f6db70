/* The CPU kernels of every variant, compared with plain formulas in double precision. */
#include "kernels.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH_VARIANT(k)                                                                                                \
  const cpu_kernels *k;                                                                                                \
  for (int variant = 0; (k = cpu_variant(variant)); variant++)

static float uniform(uint64_t *state) { return (float)(random_next(state) & 0xffffff) / 8388608.0f - 1.0f; }

/* The distance from the true value in units of a float's last place there. */
static double ulps(float got, double expected) {
  int exponent;
  frexp(expected, &exponent);
  if (exponent < -125) exponent = -125;
  return fabs((double)got - expected) / ldexp(1.0, exponent - 24);
}

typedef void map_fn(const cpu_kernels *, const float *, size_t, float *);

/* The largest error of a function over [low, high], in ulps of the result; for results smaller than `at_least`, in ulps
 * of at_least. */
static double worst(const cpu_kernels *k, map_fn *map, double (*truth)(double), float low, float high,
                    double at_least) {
  enum { N = 1 << 18 };
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  double largest = 0;
  for (int i = 0; i < N; i++) x[i] = low + (high - low) * (float)i / N;
  map(k, x, N, y);
  for (int i = 0; i < N; i++) {
    double expected = truth(x[i]), size = fabs(expected);
    double e = size >= at_least ? ulps(y[i], expected) : fabs((double)y[i] - expected) / (at_least * 0x1p-23);
    if (!(e <= largest)) largest = e;
  }
  free(x), free(y);
  return largest;
}

static void map_exp(const cpu_kernels *k, const float *x, size_t n, float *y) { k->exp(x, n, y); }
static void map_log(const cpu_kernels *k, const float *x, size_t n, float *y) { k->log(x, n, y); }
static void map_erf(const cpu_kernels *k, const float *x, size_t n, float *y) { k->erf(x, n, y); }
static void map_gelu(const cpu_kernels *k, const float *x, size_t n, float *y) {
  k->activate(DT_ACT_GELU_ERF, x, n, y);
}
static void map_tanh(const cpu_kernels *k, const float *x, size_t n, float *y) {
  k->activate(DT_ACT_GELU_TANH, x, n, y);
}
static void map_silu(const cpu_kernels *k, const float *x, size_t n, float *y) { k->activate(DT_ACT_SILU, x, n, y); }
static void map_clamped(const cpu_kernels *k, const float *x, size_t n, float *y) {
  k->activate(DT_ACT_CLAMPED, x, n, y);
}
static void map_cap(const cpu_kernels *k, const float *x, size_t n, float *y) {
  memcpy(y, x, n * sizeof *y);
  k->bound(0.5f, 30.0f, y, (int)n);
}
static double true_cap(double x) { return 30 * tanh(x / 2 / 30); }
static double true_gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2.0))); }
static double true_silu(double x) { return x / (1 + exp(-x)); }
static double true_clamped(double x) { return fmin(x, 7) / (1 + exp(-(double)1.702f * fmin(x, 7))); }
static double true_tanh(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void functions_are_accurate(void **state) {
  (void)state;
  EACH_VARIANT(k) {
    const struct {
      const char *name;
      double error, bound;
    } all[] = {
        {"exp", worst(k, map_exp, exp, -87.0f, 87.0f, 0), 1.1},
        {"ln, near 1", worst(k, map_log, log, 0.5f, 2.0f, 0), 1.1},
        {"ln, small", worst(k, map_log, log, 0x1p-40f, 0x1p-8f, 0), 1.1},
        {"ln, large", worst(k, map_log, log, 2.0f, 1e30f, 0), 1.1},
        {"erf", worst(k, map_erf, erf, -5.0f, 5.0f, 0), 1.5},
        {"gelu, positive", worst(k, map_gelu, true_gelu, 0.0f, 10.0f, 0), 2.5},
        {"gelu, negative (in ulps of 0.25)", worst(k, map_gelu, true_gelu, -10.0f, 0.0f, 0.25), 3.0},
        {"gelu by tanh", worst(k, map_tanh, true_tanh, -3.0f, 10.0f, 0x1p-10), 16.0},
        {"silu", worst(k, map_silu, true_silu, -80.0f, 80.0f, 0), 2.5},
        {"clamped", worst(k, map_clamped, true_clamped, -4.0f, 20.0f, 0), 6.0},
        {"cap of 30 (in ulps of it)", worst(k, map_cap, true_cap, -400.0f, 400.0f, 30.0), 1.76},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      printf("%s %s: %.2f ulp\n", k->name, all[i].name, all[i].error);
      if (!(all[i].error <= all[i].bound))
        fail_msg("%s %s: %.2f ulp, at most %.2f", k->name, all[i].name, all[i].error, all[i].bound);
    }
  }
}

static void functions_keep_nan_and_saturate(void **state) {
  (void)state;
  EACH_VARIANT(k) {
    const float x[16] = {NAN, -INFINITY, INFINITY, 0.0f, -0.0f, -1000.0f};
    float y[16];
    k->exp(x, 16, y);
    assert_true(isnan(y[0]) && y[1] >= 0 && y[1] < 2e-38f && y[3] == 1.0f && y[4] == 1.0f && y[5] < 2e-38f);
    k->erf(x, 16, y);
    assert_true(isnan(y[0]) && y[1] == -1.0f && y[2] == 1.0f && y[3] == 0.0f && y[5] == -1.0f);
    for (int act = DT_ACT_GELU_ERF; act <= DT_ACT_CLAMPED; act++) {
      k->activate((dt_act_kind)act, x, 16, y);
      assert_true(isnan(y[0]) && y[3] == 0.0f && fabsf(y[5]) < 1e-30f);
    }
    memcpy(y, x, sizeof y), k->bound(1.0f, 30.0f, y, 16);
    assert_true(isnan(y[0]) && y[1] == -30.0f && y[2] == 30.0f && y[3] == 0.0f && y[5] == -30.0f);
    memcpy(y, x, sizeof y), k->bound(2.0f, 0.0f, y, 16);
    assert_true(isnan(y[0]) && y[2] == INFINITY && y[5] == -2000.0f);
  }
}

/* The weights of output 5 of a panel that holds `n` numbers of 16 bits in a format, converted back to f32. */
static void packed_and_unpacked(const cpu_format *f, const uint16_t *numbers, int n, float *out) {
  char *panel = calloc(1, f->panel_bytes(n));
  const char *row[CPU_PANEL] = {[5] = (const char *)numbers};
  f->pack(panel, n, row);
  f->unpack(panel, n, 5, out);
  free(panel);
}

static const cpu_format *format_called(const cpu_kernels *k, const char *name) {
  int f = 0;
  while (strcmp(k->format[f]->name, name)) f++;
  return k->format[f];
}

static void every_half_widens_to_its_value(void **state) {
  (void)state;
  uint16_t *halves = malloc(65536 * sizeof *halves);
  float *out = malloc(65536 * sizeof *out);
  for (int i = 0; i < 65536; i++) halves[i] = (uint16_t)i;
  EACH_VARIANT(k) {
    packed_and_unpacked(format_called(k, "f16"), halves, 65536, out);
    for (int i = 0; i < 65536; i++) {
      int exponent = i >> 10 & 31, fraction = i & 1023;
      double x = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
      if (i & 0x8000) x = -x;
      assert_true(isnan(x) ? isnan(out[i]) : x == out[i] && !signbit(x) == !signbit(out[i]));
    }
    packed_and_unpacked(format_called(k, "bf16"), halves + 0x3f80, 5, out); /* a tail shorter than a vector */
    for (int i = 0; i < 5; i++) assert_true(out[i] == 1.0f + (float)i / 128.0f);
  }
  free(halves), free(out);
}

static const cpu_cache_type *cache_called(const cpu_kernels *k, const char *name) {
  int i = 0;
  while (strcmp(k->cache[i]->name, name)) i++;
  return k->cache[i];
}

static uint16_t narrowed(const cpu_kernels *k, float x) {
  float row[16] = {x};
  uint16_t half[16];
  cache_called(k, "f16")->write(row, 16, (char *)half);
  return half[0];
}

/* Checks every f16, the middle between it and the next, and the neighbours of that middle. In between, rounding is
 * monotonic. */
static void a_number_becomes_the_nearest_half_of_two_the_even_one_and_nan_where_none_is_near(void **state) {
  (void)state;
  EACH_VARIANT(k) {
    for (int i = 0; i < 0x7c00; i++) {
      uint16_t pair[16] = {(uint16_t)i, (uint16_t)(i + 1)};
      float value[16];
      dt_type_of(DT_F16)->decode(pair, 16, value);
      if (i == 0x7bff) value[1] = 65536.0f; /* for rounding, this is the number after the largest one */
      float middle = (value[0] + value[1]) / 2;
      assert_int_equal(narrowed(k, value[0]), i);
      assert_int_equal(narrowed(k, -value[0]), i | 0x8000);
      assert_int_equal(narrowed(k, nextafterf(middle, 0.0f)), i);
      if (i == 0x7bff) break; /* from here on */
      assert_int_equal(narrowed(k, middle), i + (i & 1));
      assert_int_equal(narrowed(k, -middle), (i + (i & 1)) | 0x8000);
      assert_int_equal(narrowed(k, nextafterf(middle, INFINITY)), i + 1);
    }
    const float too_large[] = {65520.0f, -65520.0f, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 5; i++) assert_int_equal(narrowed(k, too_large[i]), 0x7e00);
    assert_int_equal(narrowed(k, 0x1p-149f), 0);
  }
}

static void all_variants_round_any_bits_to_the_same_half(void **state) {
  (void)state;
  enum { N = 1 << 20 };
  uint64_t seed = 12;
  uint32_t *bits = malloc(N * sizeof *bits);
  float *x = malloc(N * sizeof *x);
  uint16_t *plain = malloc(N * sizeof *plain), *other = malloc(N * sizeof *other);
  for (int i = 0; i < N; i++) bits[i] = (uint32_t)random_next(&seed) | (i % 8 ? 0 : 0x7f800000); /* an eighth is NaN */
  memcpy(x, bits, N * sizeof *x);
  cache_called(cpu_variant(0), "f16")->write(x, N, (char *)plain);
  for (int i = 0; i < N; i++)
    if (isnan(x[i])) assert_int_equal(plain[i], 0x7e00);
  for (int v = 1; cpu_variant(v); v++) {
    cache_called(cpu_variant(v), "f16")->write(x, N, (char *)other);
    assert_memory_equal(plain, other, N * sizeof *plain);
  }
  free(bits), free(x), free(plain), free(other);
}

/* Uses panels of bf16, so that exact weights are easy to make. Checks all numbers of rows and group sizes. */
static void products_are_those_of_the_formula(void **state) {
  (void)state;
  enum { K = 300, PANELS = 5, ROWS = 64, LD = CPU_GROUP * CPU_PANEL };
  uint64_t seed = 1;
  const dt_dtype types[] = {DT_F32, DT_F16, DT_BF16};
  float *w = malloc(sizeof *w * PANELS * K * CPU_PANEL), *x = malloc(sizeof *x * ROWS * K);
  uint16_t *w16 = malloc(sizeof *w16 * PANELS * K * CPU_PANEL);
  float *sums = malloc(sizeof *sums * ROWS * LD);
  for (int i = 0; i < ROWS * K; i++) x[i] = uniform(&seed);
  for (int type = 0; type < 3; type++) {
    for (int i = 0; i < PANELS * K * CPU_PANEL; i++) {
      uint32_t fraction = random_next(&seed) & 127; /* 1.f * 2^-3: seven bits of fraction, exact in all types */
      w[i] = (1.0f + (float)fraction / 128.0f) / 8.0f;
      w16[i] = (uint16_t)(types[type] == DT_BF16 ? (124u << 7 | fraction) : (12u << 10 | fraction << 3));
      if (random_next(&seed) & 1) w[i] = -w[i], w16[i] |= 0x8000;
    }
    EACH_VARIANT(k) {
      cpu_matrix m = {.data = types[type] == DT_F32 ? (char *)w : (char *)w16, .k = K, .panels = PANELS};
      for (int f = 0; f < CPU_FORMATS; f++)
        if (k->format[f]->takes == types[type]) m.format = k->format[f];
      for (int n = 1; n <= ROWS; n += n < 14 ? 1 : 7)
        for (int count = 1; count <= CPU_GROUP; count++) {
          m.format->multiply(&m, 1, count, (const char *)x, K * sizeof *x, n, sums, LD);
          for (int r = 0; r < n; r++)
            for (int j = 0; j < count * CPU_PANEL; j++) {
              double sum = 0;
              for (int i = 0; i < K; i++)
                sum += (double)x[r * K + i] * w[((1 + j / CPU_PANEL) * K + i) * CPU_PANEL + j % CPU_PANEL];
              assert_true(fabs(sums[r * LD + j] - sum) < 2e-5);
            }
        }
    }
  }
  free(w), free(w16), free(x), free(sums);
}

static void norms_are_those_of_the_formulas(void **state) {
  (void)state;
  EACH_VARIANT(k) {
    uint64_t seed = 2;
    for (int hidden = 1; hidden < 100; hidden += 7) {
      float x[112], w[112], b[112], y[112];
      for (int i = 0; i < 112; i++) x[i] = 3.0f + uniform(&seed), w[i] = uniform(&seed), b[i] = uniform(&seed);
      for (int rms = 0; rms < 2; rms++) {
        double mean = 0, square = 0;
        for (int i = 0; i < hidden && !rms; i++) mean += (double)x[i] / hidden;
        for (int i = 0; i < hidden; i++) square += (x[i] - mean) * (x[i] - mean) / hidden;
        k->norm(rms ? DT_NORM_RMS : DT_NORM_LAYER, x, w, rms ? NULL : b, hidden, 1e-5f, y);
        for (int i = 0; i < hidden; i++) {
          double expected = (x[i] - mean) / sqrt(square + 1e-5) * w[i] + (rms ? 0 : b[i]);
          assert_true(fabs(y[i] - expected) < 2e-5 * (1 + fabs(expected)));
        }
      }
    }
  }
}

/* Decodes a row of q8 as its definition says. */
static float of_codes(const char *row, int dim, int i) {
  float scale[1];
  dt_type_of(DT_F16)->decode(row + dim + i / 32 * 2, 1, scale);
  return (float)(int8_t)row[i] * scale[0];
}

/* Writes the numbers, and replaces them by what was stored. */
static void hold(const cpu_cache_type *type, float *numbers, int dim, char *row) {
  type->write(numbers, dim, row);
  if (strcmp(type->name, "f16") == 0) dt_type_of(DT_F16)->decode(row, (size_t)dim, numbers);
  for (int i = 0; strcmp(type->name, "q8") == 0 && i < dim; i++) numbers[i] = of_codes(row, dim, i);
}

/* No number is off by more than half a step. A step is the scale, which is the smallest f16 that is enough for the
 * largest number: 1/127 of it, rounded up to 11 bits or, if it is small, to a multiple of 2^-24. */
static void a_row_of_8_bits_is_near_and_the_same_in_all_variants(void **state) {
  (void)state;
  enum { DIM = 80, EXPONENTS = 160 };
  uint64_t seed = 14;
  EACH_VARIANT(k) {
    const cpu_cache_type *q8 = cache_called(k, "q8");
    assert_int_equal(q8->row_bytes(DIM), DIM + 3 * 2);
    for (int e = 0; e < EXPONENTS; e++) {
      float x[DIM], largest[3] = {0};
      char row[DIM + 6], plain[DIM + 6];
      for (int i = 0; i < DIM; i++) {
        x[i] = ldexpf(uniform(&seed), 20 - e);
        largest[i / 32] = fmaxf(largest[i / 32], fabsf(x[i]));
      }
      q8->write(x, DIM, row);
      cache_called(cpu_variant(0), "q8")->write(x, DIM, plain);
      assert_memory_equal(row, plain, sizeof row);
      for (int i = 0; i < DIM; i++) {
        double step = largest[i / 32] / 127.0 * (1 + 0x1p-10) + 0x1p-24;
        assert_true(fabs((double)of_codes(row, DIM, i) - x[i]) <= step * 0.50001);
        assert_true(row[i] != -128);
      }
    }
  }
}

/* 127 times the largest f16 can be stored, but nothing larger: all 32 numbers are NaN then, and those of other groups
 * are not. */
static void a_group_of_8_bits_that_has_no_scale_is_nan(void **state) {
  (void)state;
  const float most = 127 * 65504.0f, wrong[] = {nextafterf(most, INFINITY), -nextafterf(most, INFINITY), INFINITY, NAN};
  EACH_VARIANT(k) {
    const cpu_cache_type *q8 = cache_called(k, "q8");
    float x[64] = {[3] = 1, [40] = -most};
    char row[68];
    q8->write(x, 64, row);
    assert_true(of_codes(row, 64, 40) == -most && of_codes(row, 64, 39) == 0);
    for (int i = 0; i < 4; i++) {
      x[40] = wrong[i];
      q8->write(x, 64, row);
      for (int j = 32; j < 64; j++) assert_true(isnan(of_codes(row, 64, j)));
      assert_true(fabs((double)of_codes(row, 64, 3) - 1) < 0.01);
    }
    memset(x, 0, sizeof x);
    q8->write(x, 64, row);
    for (int j = 0; j < 68; j++) assert_int_equal(row[j], 0);
  }
}

static void check_attention(int type) {
  enum { SLOTS = 140, DIM = 112, LD = 144 };
  uint64_t seed = 3;
  float *keys = malloc(sizeof *keys * SLOTS * DIM), *values = malloc(sizeof *values * SLOTS * DIM);
  char *held_keys = malloc(sizeof *keys * SLOTS * DIM), *held_values = malloc(sizeof *values * SLOTS * DIM);
  EACH_VARIANT(k) {
    const cpu_cache_type *held = k->cache[type], *f32 = cache_called(k, "f32");
    for (int i = 0; i < SLOTS * DIM; i++) keys[i] = uniform(&seed), values[i] = uniform(&seed);
    for (int slot = 0; slot < SLOTS; slot++) { /* and the same in f32, after rounding to the type */
      hold(held, keys + slot * DIM, DIM, held_keys + (size_t)slot * held->row_bytes(DIM));
      hold(held, values + slot * DIM, DIM, held_values + (size_t)slot * held->row_bytes(DIM));
    }
    for (int n = 1; n <= CPU_ATTENTION_ROWS; n++)
      for (int prefix = 0; prefix < 80; prefix += 5) {
        float q[CPU_ATTENTION_ROWS][DIM], out[CPU_ATTENTION_ROWS][DIM], scores[CPU_ATTENTION_ROWS * LD];
        int32_t path[] = {131, 122, 139, 135};
        const float sinks[] = {0, -2, 40};
        cpu_attention_row rows[CPU_ATTENTION_ROWS];
        for (int r = 0; r < n; r++) {
          for (int d = 0; d < DIM; d++) q[r][d] = uniform(&seed);
          rows[r] =
              (cpu_attention_row){q[r], out[r], path, prefix + r, 1 + r % 4, 0, 0, 0, 0, r % 3 ? &sinks[r % 3] : NULL};
        }
        f32->attend((char *)keys, (char *)values, DIM, rows, n, scores, LD);
        for (int r = 0; r < n; r++) {
          double weight[SLOTS], total = 0, expected[DIM] = {0};
          int count = rows[r].prefix + rows[r].path_len;
          for (int p = 0; p < count; p++) {
            int slot = p < rows[r].prefix ? p : path[p - rows[r].prefix];
            double dot = 0;
            for (int d = 0; d < DIM; d++) dot += (double)q[r][d] * keys[slot * DIM + d];
            total += weight[p] = exp(dot);
          }
          if (rows[r].sink) total += exp(*rows[r].sink);
          for (int p = 0; p < count; p++)
            for (int d = 0; d < DIM; d++)
              expected[d] += weight[p] / total * values[(p < rows[r].prefix ? p : path[p - rows[r].prefix]) * DIM + d];
          for (int d = 0; d < DIM; d++) assert_true(fabs(out[r][d] - expected[d]) < 1e-5);
        }
        float wide[CPU_ATTENTION_ROWS][DIM];
        memcpy(wide, out, sizeof wide);
        held->attend(held_keys, held_values, DIM, rows, n, scores, LD);
        assert_memory_equal(wide, out, sizeof *out * (size_t)n);
      }
  }
  free(keys), free(values), free(held_keys), free(held_values);
}

static void attention_is_softmax_weighted_values_by_logical_position(void **state) {
  (void)state;
  for (int type = 0; type < CPU_CACHES; type++) check_attention(type);
}

static const float *sorted_by;
static int by_logit(const void *a, const void *b) {
  int i = *(const int *)a, j = *(const int *)b;
  if (sorted_by[i] != sorted_by[j]) return sorted_by[i] > sorted_by[j] ? -1 : 1;
  return i - j;
}

/* Reduces `count` logits block by block. It uses a copy, since the kernel writes past the last logit. */
enum { STEP = 3 }; /* between the parts of two blocks */
static void reduce(const cpu_kernels *k, const float *logits, int count, int most, cpu_top *top,
                   cpu_softmax_part *parts) {
  float block[CPU_LOGIT_BLOCK];
  *top = (cpu_top){.count = 0};
  for (int from = 0; from < count; from += CPU_LOGIT_BLOCK) {
    int n = count - from < CPU_LOGIT_BLOCK ? count - from : CPU_LOGIT_BLOCK;
    memcpy(block, logits + from, (size_t)n * sizeof *block);
    float largest = k->rank(block, block, from, n, most, top);
    if (!parts) continue;
    cpu_softmax_part *part = &parts[from / CPU_LOGIT_BLOCK * STEP], sum;
    k->softmax_part(block, n, largest, part);
    k->softmax_sum(block, n, k->largest(block, n), &sum);
    assert_memory_equal(&sum.max, &part->max, sizeof sum.max);
    assert_memory_equal(&sum.sum, &part->sum, sizeof sum.sum);
  }
}

static void candidates_are_those_of_a_sort_with_ties_by_lower_id(void **state) {
  (void)state;
  enum { IDS = 5003 };
  float *logits = malloc(sizeof *logits * IDS);
  int *order = malloc(sizeof *order * IDS);
  EACH_VARIANT(k) {
    uint64_t seed = 4;
    for (int round = 0; round < 60; round++) {
      int ids = round < 40 ? 1 + round : IDS - round, most = round % 3 == 0 ? 1 : round % 3 == 1 ? 32 : 7;
      for (int i = 0; i < ids; i++) { /* many ties, rising, falling, or all different */
        logits[i] = round % 5 == 0   ? (float)(random_next(&seed) % 9)
                    : round % 5 == 1 ? (float)i
                    : round % 5 == 2 ? (float)-i
                                     : 9 * uniform(&seed);
        order[i] = i;
      }
      sorted_by = logits;
      qsort(order, (size_t)ids, sizeof *order, by_logit);
      cpu_softmax_part parts[32 * STEP];
      for (int i = 0; i < 32 * STEP; i++)
        parts[i] =
            (cpu_softmax_part){NAN, NAN, NAN}; /* what is stored after the last block, or between two, must not count */
      cpu_top top;
      reduce(k, logits, ids, most, &top, parts);
      assert_int_equal(top.count, ids < most ? ids : most);
      assert_false(top.nan);
      for (int i = 0; i < top.count; i++) {
        assert_int_equal(top.id[i], order[i]);
        assert_true(top.logit[i] == logits[order[i]]);
      }
      cpu_softmax_part all = k->combine_parts(parts, STEP, (ids + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK);
      double expected = 0, expected_weighted = 0;
      for (int i = 0; i < ids; i++) {
        double d = (double)logits[i] - logits[order[0]];
        expected += exp(d), expected_weighted += exp(d) * d;
      }
      assert_true(all.max == logits[order[0]]);
      assert_true(fabs(all.sum / expected - 1) < 1e-6);
      assert_true(fabs(all.weighted - expected_weighted) < 5e-6 * (1 + fabs(expected_weighted)));
    }
  }
  free(logits), free(order);
}

static void a_nan_among_the_logits_is_seen_wherever_it_is(void **state) {
  (void)state;
  float logits[300];
  cpu_top top;
  EACH_VARIANT(k) {
    for (int at = 0; at < 300; at += 13) {
      for (int i = 0; i < 300; i++) logits[i] = (float)i;
      reduce(k, logits, 300, 4, &top, NULL);
      assert_false(top.nan);
      logits[at] = NAN;
      reduce(k, logits, 300, 4, &top, NULL);
      assert_true(top.nan);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_are_accurate),
      cmocka_unit_test(functions_keep_nan_and_saturate),
      cmocka_unit_test(every_half_widens_to_its_value),
      cmocka_unit_test(a_number_becomes_the_nearest_half_of_two_the_even_one_and_nan_where_none_is_near),
      cmocka_unit_test(all_variants_round_any_bits_to_the_same_half),
      cmocka_unit_test(products_are_those_of_the_formula),
      cmocka_unit_test(norms_are_those_of_the_formulas),
      cmocka_unit_test(a_row_of_8_bits_is_near_and_the_same_in_all_variants),
      cmocka_unit_test(a_group_of_8_bits_that_has_no_scale_is_nan),
      cmocka_unit_test(attention_is_softmax_weighted_values_by_logical_position),
      cmocka_unit_test(candidates_are_those_of_a_sort_with_ties_by_lower_id),
      cmocka_unit_test(a_nan_among_the_logits_is_seen_wherever_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
