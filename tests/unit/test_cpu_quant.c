/* Quantized matrices on the CPU: they are packed and unpacked without loss, and their products are those that quant.h
 * defines, with the same bits in every variant, for any number of rows, whatever a row's index. */
#include "kernels.h"
#include "quant.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PANELS = 5, OUTPUTS = PANELS * CPU_PANEL, ROWS = 70 };

typedef struct {
  quant_format is;
  int activations; /* 8: one digit, 16: two digits */
  int k;
  char *file;   /* [OUTPUTS] rows of blocks */
  float *x;     /* [ROWS][k] */
  cpu_matrix m; /* for the variant used last */
  char *rows;   /* [ROWS] rounded rows, step bytes apart */
  size_t step;
} subject;

static void f16_into(float x, char *to) { /* small and normal */
  uint32_t bits;
  memcpy(&bits, &x, 4);
  uint16_t half = (uint16_t)((bits >> 13 & 0x3ffff) - 0x1c000);
  memcpy(to, &half, 2);
}

/* Sets the scales of a block: f16, and MXFP4's exponent. */
static void random_scales(dt_dtype dtype, uint64_t *state, char *block) {
  float scale = 0.001f * (float)(1 + random_next(state) % 60), minimum = 0.002f * (float)(1 + random_next(state) % 20);
  if (dtype == DT_MXFP4) {
    block[0] = (char)(110 + random_next(state) % 8);
    return;
  }
  f16_into(scale, block + (dtype == DT_Q2_K ? 80 : dtype == DT_Q3_K ? 108 : dtype == DT_Q6_K ? 208 : 0));
  if (dtype == DT_Q2_K) f16_into(minimum, block + 82);
  if (dtype == DT_Q4_1 || dtype == DT_Q5_1 || dtype == DT_Q4_K || dtype == DT_Q5_K) f16_into(minimum, block + 2);
}

static void random_block(dt_dtype dtype, uint64_t *state, char *block) {
  for (int i = 0; i < dt_type_of(dtype)->bytes; i++) block[i] = (char)random_next(state);
  random_scales(dtype, state, block);
}

static const cpu_format *format_of(const cpu_kernels *k, dt_dtype dtype, int activations) {
  for (int i = 0; i < CPU_FORMATS; i++)
    if (k->format[i]->takes == dtype && k->format[i]->activations == activations) return k->format[i];
  fail_msg("no format takes %s and rounds to %d bits", dt_type_of(dtype)->name, activations);
  return NULL;
}

static void prepare(subject *s, const cpu_kernels *k) {
  const cpu_format *f = format_of(k, s->is.dtype, s->activations);
  size_t row = dt_row_bytes(s->is.dtype, (size_t)s->k), panel = f->panel_bytes(s->k);
  free(s->m.data), free(s->rows);
  s->m = (cpu_matrix){f, aligned_alloc(64, PANELS * panel), NULL, s->k, PANELS};
  memset(s->m.data, 0, PANELS * panel);
  for (int p = 0; p < PANELS; p++) {
    const char *rows[CPU_PANEL];
    for (int j = 0; j < CPU_PANEL; j++) rows[j] = s->file + row * (size_t)(p * CPU_PANEL + j);
    f->pack(s->m.data + panel * (size_t)p, s->k, rows);
  }
  s->step = f->prepared_bytes(s->k);
  s->rows = aligned_alloc(64, ROWS * s->step);
  memset(s->rows, 0, ROWS * s->step);
  for (int r = 0; r < ROWS; r++) f->prepare(s->x + (size_t)r * (size_t)s->k, s->k, s->rows + (size_t)r * s->step);
}

static subject subject_new(quant_format is, int activations, int k) {
  subject s = {.is = is, .activations = activations, .k = k};
  size_t blocks = (size_t)OUTPUTS * (size_t)(k / dt_type_of(is.dtype)->numbers);
  uint64_t state = 11;
  s.file = malloc(blocks * (size_t)dt_type_of(is.dtype)->bytes);
  for (size_t i = 0; i < blocks; i++) random_block(is.dtype, &state, s.file + i * (size_t)dt_type_of(is.dtype)->bytes);
  s.x = malloc(sizeof(float) * ROWS * (size_t)k);
  for (int i = 0; i < ROWS * k; i++) {
    float u = (float)(random_next(&state) & 0xffff) / 32768.0f - 1.0f;
    s.x[i] = i % 97 ? u : i % 3 ? 9.0f * u : 90.0f * u; /* some are much larger, as in real rows */
  }
  return s;
}

static void subject_free(subject *s) { free(s->file), free(s->x), free(s->m.data), free(s->rows); }

#define ENTRY(name, ...) {__VA_ARGS__},
static const quant_format formats[] = {QUANT_FORMATS(ENTRY)};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Rows of whole cells and, if blocks are short, with a last cell of two blocks and of one block. */
static int lengths_of(quant_format f, int k[3]) {
  k[0] = 512, k[1] = 576, k[2] = 32;
  return dt_type_of(f.dtype)->numbers == QUANT_CELL ? 1 : 3;
}

#define EACH_SUBJECT(s)                                                                                                \
  for (int f_ = 0, k_[3]; f_ < FORMATS; f_++)                                                                          \
    for (int l_ = 0, n_ = 2 * lengths_of(formats[f_], k_); l_ < n_; l_++)                                              \
      for (subject s = subject_new(formats[f_], l_ % 2 ? 16 : 8, k_[l_ / 2]), *once_ = &s; once_;                      \
           subject_free(&s), once_ = NULL)

static void weights_come_back_as_the_reference_decoder_gives_them(void **state) {
  (void)state;
  EACH_SUBJECT(s) {
    prepare(&s, cpu_variant(0));
    float *expected = malloc((size_t)s.k * 4), *got = malloc((size_t)s.k * 4);
    size_t row = dt_row_bytes(s.is.dtype, (size_t)s.k);
    for (int o = 0; o < OUTPUTS; o++) {
      dt_type_of(s.is.dtype)->decode(s.file + row * (size_t)o, (size_t)s.k, expected);
      s.m.format->unpack(s.m.data + s.m.format->panel_bytes(s.k) * (size_t)(o / CPU_PANEL), s.k, o % CPU_PANEL, got);
      assert_memory_equal(expected, got, (size_t)s.k * 4);
    }
    free(expected), free(got);
  }
}

/* Compares with the size in the file; the guide states these bounds. */
static void matrices_are_hardly_larger_than_in_the_file(void **state) {
  (void)state;
  EACH_SUBJECT(s) {
    if (s.k % QUANT_CELL) continue;
    double held = (double)format_of(cpu_variant(0), s.is.dtype, s.activations)->panel_bytes(s.k) / CPU_PANEL;
    double file = (double)dt_row_bytes(s.is.dtype, (size_t)s.k);
    assert_true(held <= (s.is.dtype == DT_Q3_K ? 1.06 : 1.03) * file); /* its scales of six bits take a byte each */
  }
}

/* Number i of a rounded row: its q, the maximum of q, and how many numbers share its scale. */
typedef struct {
  int q, limit, shared;
  double scale;
} rounded;

static rounded rounded_at(const subject *s, const char *row, int i) {
  const int within = i % QUANT_CELL;
  if (s->activations == 8) {
    const quant_one *cell = (const quant_one *)row + i / QUANT_CELL;
    const int b = within / QUANT_BLOCK, finer = 1 << QUANT_FINER;
    if (!(cell->fine >> b & 1)) return (rounded){cell->digit[within], QUANT_LIMIT, QUANT_BLOCK, (double)cell->scale[b]};
    assert_true(cell->finer_scale[b] * (float)finer == cell->scale[b]);
    return (rounded){cell->digit[within] * finer + cell->finer[within], QUANT_LIMIT * finer, QUANT_BLOCK,
                     (double)cell->finer_scale[b]};
  }
  const quant_two *cell = (const quant_two *)row + i / QUANT_CELL;
  const int8_t *group = cell->digits + 2 * (within / s->is.group * s->is.group);
  int high = group[within % s->is.group], low = group[s->is.group + within % s->is.group];
  return (rounded){high * (1 << s->is.shift) + low, s->is.limit, QUANT_CELL, (double)cell->scale};
}

/* Computes the numbers that a rounded row represents. */
static void read_rounded(const subject *s, int r, double *x) {
  for (int i = 0; i < s->k; i++) {
    rounded is = rounded_at(s, s->rows + (size_t)r * s->step, i);
    assert_in_range(is.q + is.limit, 0, 2 * is.limit);
    x[i] = is.scale * is.q;
  }
}

static void rows_are_rounded_to_the_nearest(void **state) {
  (void)state;
  EACH_SUBJECT(s) {
    prepare(&s, cpu_variant(0));
    double *x = malloc(sizeof *x * (size_t)s.k);
    for (int r = 0; r < ROWS; r++) {
      read_rounded(&s, r, x);
      const float *row = s.x + (size_t)r * (size_t)s.k;
      for (int first = 0, end; first < s.k; first = end) {
        rounded any = rounded_at(&s, s.rows + (size_t)r * s.step, first);
        double most = 0;
        end = first + any.shared < s.k ? first + any.shared : s.k;
        for (int i = first; i < end; i++) most = fmax(most, fabs((double)row[i]));
        for (int i = first; i < end; i++) assert_true(fabs(x[i] - (double)row[i]) <= 0.505 * most / any.limit);
      }
    }
    free(x);
  }
}

static void products_are_those_of_weights_and_rounded_rows(void **state) {
  (void)state;
  EACH_SUBJECT(s) {
    prepare(&s, cpu_variant(0));
    float *sums = malloc(sizeof *sums * OUTPUTS), *w = malloc(sizeof *w * (size_t)s.k);
    double *x = malloc(sizeof *x * (size_t)s.k);
    read_rounded(&s, 3, x);
    s.m.format->multiply(&s.m, 0, CPU_GROUP, s.rows + 3 * s.step, s.step, 1, sums, OUTPUTS);
    for (int o = 0; o < CPU_GROUP * CPU_PANEL; o++) {
      s.m.format->unpack(s.m.data + s.m.format->panel_bytes(s.k) * (size_t)(o / CPU_PANEL), s.k, o % CPU_PANEL, w);
      double expected = 0, size = 0;
      for (int i = 0; i < s.k; i++) expected += (double)w[i] * x[i], size += fabs((double)w[i] * x[i]);
      /* With one digit the sums for integer minima are rounded once more, to 2^-16 of the largest one. */
      double bound = s.activations == 8 && quant_has_whole_minima(&s.is) ? 3e-5 : 1e-6;
      assert_true(fabs((double)sums[o] - expected) <= bound * size);
    }
    free(sums), free(w), free(x);
  }
}

/* Compares every variant with plain C, row by row: some numbers of rows, first panels and groups of panels. */
static void all_variants_give_the_same_bits_for_any_number_of_rows(void **state) {
  (void)state;
  EACH_SUBJECT(s) {
    prepare(&s, cpu_variant(0));
    float *expected = malloc(sizeof *expected * ROWS * OUTPUTS), *got = malloc(sizeof *got * ROWS * OUTPUTS);
    for (int r = 0; r < ROWS; r++)
      for (int p = 0; p < PANELS; p++)
        s.m.format->multiply(&s.m, p, 1, s.rows + (size_t)r * s.step, s.step, 1,
                             expected + (size_t)r * OUTPUTS + p * CPU_PANEL, OUTPUTS);
    const cpu_kernels *k;
    for (int v = 1; (k = cpu_variant(v)); v++) {
      char *plain = malloc(ROWS * s.step);
      memcpy(plain, s.rows, ROWS * s.step);
      prepare(&s, k);
      assert_memory_equal(plain, s.rows, ROWS * s.step);
      free(plain);
      for (int n = 1; n <= ROWS; n += n < 20 ? 1 : 11) {
        int from = ROWS - n, first = n % 2, count = 1 + n % CPU_GROUP;
        s.m.format->multiply(&s.m, first, count, s.rows + (size_t)from * s.step, s.step, n, got, OUTPUTS);
        for (int r = 0; r < n; r++)
          assert_memory_equal(expected + (size_t)(from + r) * OUTPUTS + first * CPU_PANEL, got + (size_t)r * OUTPUTS,
                              sizeof *got * (size_t)count * CPU_PANEL);
      }
    }
    free(expected), free(got);
  }
}

/* Codes and digits at both ends of their ranges: in no variant may a sum exceed the bits that it has (simd.h:
 * i_pairs). */
static void the_largest_sums_have_the_same_bits_in_all_variants(void **state) {
  (void)state;
  static const unsigned char ends[] = {0xff, 0x00, 0x80, 0x77};
  enum { N = 6 };
  EACH_SUBJECT(s) {
    const int bytes = dt_type_of(s.is.dtype)->bytes, blocks = OUTPUTS * (s.k / dt_type_of(s.is.dtype)->numbers);
    for (int i = 0; i < N * s.k; i++) s.x[i] = i / s.k == 0 || i % (i / s.k) ? 1.0f : -1.0f;
    for (size_t e = 0; e < sizeof ends; e++) {
      uint64_t seed = 5;
      float expected[N * CPU_PANEL], got[N * CPU_PANEL];
      const cpu_kernels *k;
      memset(s.file, ends[e], (size_t)blocks * (size_t)bytes);
      for (int b = 0; b < blocks; b++) random_scales(s.is.dtype, &seed, s.file + (size_t)b * (size_t)bytes);
      for (int v = 0; (k = cpu_variant(v)); v++) {
        prepare(&s, k);
        s.m.format->multiply(&s.m, 0, 1, s.rows, s.step, N, v ? got : expected, CPU_PANEL);
        if (v) assert_memory_equal(expected, got, sizeof got);
      }
    }
  }
}

static void a_cell_that_is_not_finite_gives_nan_and_zeros_give_zero(void **state) {
  (void)state;
  const cpu_kernels *k;
  EACH_SUBJECT(s) {
    s.x[5] = INFINITY, s.x[s.k + 7] = NAN;
    memset(s.x + 2 * s.k, 0, sizeof *s.x * (size_t)s.k);
    float sums[4 * CPU_PANEL];
    for (int v = 0; (k = cpu_variant(v)); v++) {
      prepare(&s, k);
      s.m.format->multiply(&s.m, 0, 1, s.rows, s.step, 4, sums, CPU_PANEL);
      for (int j = 0; j < CPU_PANEL; j++) {
        assert_true(isnan(sums[j]) && isnan(sums[CPU_PANEL + j]));
        assert_true(sums[2 * CPU_PANEL + j] == 0.0f && isfinite(sums[3 * CPU_PANEL + j]));
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_come_back_as_the_reference_decoder_gives_them),
      cmocka_unit_test(matrices_are_hardly_larger_than_in_the_file),
      cmocka_unit_test(rows_are_rounded_to_the_nearest),
      cmocka_unit_test(products_are_those_of_weights_and_rounded_rows),
      cmocka_unit_test(all_variants_give_the_same_bits_for_any_number_of_rows),
      cmocka_unit_test(the_largest_sums_have_the_same_bits_in_all_variants),
      cmocka_unit_test(a_cell_that_is_not_finite_gives_nan_and_zeros_give_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
