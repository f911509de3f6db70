/* Products with quantized matrices alone: how close they come to the limit of the processor.
 *
 *   bench_products [OUTPUTS K [VARIANT [FORMAT]]]      the shape of a matrix (8960 1536: an inner matrix of a 1.5B)
 *
 * Uses one thread. For every variant, format and definition it prints the nanoseconds to round a row of K numbers; and
 * for 1 to 64 rows the microseconds, the G products (multiply-adds) per second and, on processors with AVX-512's
 * VNNI, their share of its peak, which is measured with sixteen independent chains of dot products in registers. Small
 * shapes stay in the cache; large ones are memory-bound. */
#include "cpu.h"
#include "dtrun.h"
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
__attribute__((target("avx512f,avx512vnni"))) static double peak_of_vnni(void) {
  enum { CHAINS = 16, TURNS = 1 << 22 };
  __m512i sum[CHAINS], a = _mm512_set1_epi32(0x01020304), b = _mm512_set1_epi32(0x01ff02fe);
  for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_epi32(i);
  double start = dt_clock_ms();
  for (int t = 0; t < TURNS; t++) {
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], a, b);
  }
  double ms = dt_clock_ms() - start;
  for (int i = 1; i < CHAINS; i++) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
  volatile int32_t sink = _mm512_reduce_add_epi32(sum[0]);
  (void)sink;
  return 64.0 * CHAINS * TURNS / ms / 1e6;
}
static bool has_vnni(void) { return __builtin_cpu_supports("avx512vnni"); }
#else
static double peak_of_vnni(void) { return 0; }
static bool has_vnni(void) { return false; }
#endif

enum { MOST_ROWS = 64 };
static const int counts[] = {1, 2, 4, 6, 8, 12, 16, 32, 64};

static double time_of(const cpu_matrix *m, const char *rows, size_t step, int n, float *sums) {
  double best = 1e9, until = dt_clock_ms() + 60;
  while (dt_clock_ms() < until) {
    double start = dt_clock_ms();
    for (int p = 0; p < m->panels; p += CPU_GROUP)
      m->format->multiply(m, p, m->panels - p < CPU_GROUP ? m->panels - p : CPU_GROUP, rows, step, n, sums,
                          CPU_GROUP * CPU_PANEL);
    double ms = dt_clock_ms() - start;
    if (ms < best) best = ms;
  }
  return best;
}

/* Rounds the rows. Returns the ms per row, the best of several runs. */
static double time_of_rounding(const cpu_format *f, const float *x, int k, char *rows, size_t step) {
  double best = HUGE_VAL;
  for (int i = 0; i < 10; i++) {
    double start = dt_clock_ms();
    for (int r = 0; r < MOST_ROWS; r++) f->prepare(x + (size_t)r * (size_t)k, k, rows + (size_t)r * step);
    best = fmin(best, dt_clock_ms() - start);
  }
  return best / MOST_ROWS;
}

static void bench(const char *variant, const cpu_format *f, int outputs, int k, const char *codes, const float *x,
                  double peak) {
  const size_t row = dt_row_bytes(f->takes, (size_t)k), panel = f->panel_bytes(k), step = f->prepared_bytes(k);
  cpu_matrix m = {f, NULL, NULL, k, outputs / CPU_PANEL};
  char *rows = aligned_alloc(64, MOST_ROWS * step);
  float *sums = aligned_alloc(64, sizeof *sums * MOST_ROWS * CPU_GROUP * CPU_PANEL);
  m.data = aligned_alloc(64, (size_t)m.panels * panel);
  if (!rows || !sums || !m.data) abort();
  memset(m.data, 0, (size_t)m.panels * panel);
  for (int p = 0; p < m.panels; p++) {
    const char *of[CPU_PANEL];
    for (int j = 0; j < CPU_PANEL; j++) of[j] = codes + row * (size_t)j;
    f->pack(m.data + panel * (size_t)p, k, of);
  }
  printf("%-10s %s/%-2d  rounding %.1f ns", variant, f->name, f->activations,
         1e6 * time_of_rounding(f, x, k, rows, step));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    double ms = time_of(&m, rows, step, counts[i], sums);
    double rate = (double)outputs * k * counts[i] / ms / 1e6;
    printf("  %d: %.2f us %.1f", counts[i], 1e3 * ms, rate);
    if (peak > 0) printf(" %.0f%%", 100 * rate / peak);
  }
  printf("\n");
  free(rows), free(sums), free(m.data);
}

int main(int argc, char **argv) {
  int outputs = argc > 2 ? atoi(argv[1]) : 8960, k = argc > 2 ? atoi(argv[2]) : 1536;
  if (outputs < CPU_PANEL || outputs % CPU_PANEL || k < 256 || k % 256) {
    fprintf(stderr, "usage: bench_products [OUTPUTS K [VARIANT [FORMAT]]]: multiples of %d and 256\n", CPU_PANEL);
    return 2;
  }
  uint64_t state = 88172645463325252u;
  char *codes = malloc(CPU_PANEL * sizeof(float) * (size_t)k);
  float *x = malloc(sizeof *x * MOST_ROWS * (size_t)k);
  if (!codes || !x) return 1;
  for (size_t i = 0; i < CPU_PANEL * sizeof(float) * (size_t)k; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    codes[i] = (char)((state & 0x1b) | 0x20); /* a normal number if read as a scale of any format */
  }
  for (int i = 0; i < MOST_ROWS * k; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x[i] = (float)(int32_t)state * 0x1p-31f;
  }
  double peak = has_vnni() ? peak_of_vnni() : 0;
  printf("%d outputs of %d numbers; VNNI's peak %.0f G products/s\nrows: time, G products/s%s\n", outputs, k, peak,
         peak > 0 ? ", share of the peak" : "");
  for (int v = 0; cpu_variant(v); v++)
    for (int f = 0; f < CPU_FORMATS; f++) {
      const cpu_format *format = cpu_variant(v)->format[f];
      if (argc > 3 && strcmp(argv[3], cpu_variant(v)->name)) continue;
      if (argc > 4 && strcmp(argv[4], format->name)) continue;
      if (format->activations) bench(cpu_variant(v)->name, format, outputs, k, codes, x, peak);
    }
  free(codes), free(x);
  return 0;
}
