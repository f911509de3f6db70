/* The products of two versions of dtrun, in one process: versions.sh compiles this file twice. With VERSION it is what each
 * version's library shows; else the program, which calls both in turns on the same matrix and rows. So what the machine does
 * beside falls on both, and a hundredth shows where two programs' times scatter by tenths.
 *
 *   versions OLD.so NEW.so OUTPUTS K VARIANT [MS]      MS: for each format and number of rows (40), and 9 pairs at least
 *
 * Printed: microseconds of both, medians; new over old, of the best times, and the median of the pairs' ratios. */
#include "cpu.h"
#include "dtrun.h"
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const cpu_format *format_fn(const char *variant, int i);
typedef size_t row_bytes_fn(const cpu_format *f, int k);

#if defined(VERSION)
__attribute__((visibility("default"))) format_fn version_format;
__attribute__((visibility("default"))) row_bytes_fn version_row_bytes;
const cpu_format *version_format(const char *variant, int i) {
  for (int v = 0; cpu_variant(v); v++)
    if (!strcmp(cpu_variant(v)->name, variant)) return i < CPU_FORMATS ? cpu_variant(v)->format[i] : NULL;
  return NULL;
}
size_t version_row_bytes(const cpu_format *f, int k) { return dt_row_bytes(f->takes, (size_t)k); }
#else

#include <time.h>

enum { MOST_ROWS = 64, MOST_PAIRS = 20000, LEAST_PAIRS = 9 };
static const int counts[] = {1, 2, 4, 8, 16, 64};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double time_of(const cpu_format *f, const cpu_matrix *m, const char *rows, size_t step, int n, int times,
                      float *sums) {
  double start = now_ms();
  for (int t = 0; t < times; t++)
    for (int p = 0; p < m->panels; p += CPU_GROUP)
      f->multiply(m, p, m->panels - p < CPU_GROUP ? m->panels - p : CPU_GROUP, rows, step, n, sums,
                  CPU_GROUP * CPU_PANEL);
  return (now_ms() - start) / times;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void compare(const cpu_format *const version[2], cpu_matrix m[2], const char *rows, size_t step, int n,
                    double window) {
  static double ms[2][MOST_PAIRS], ratio[MOST_PAIRS];
  static float sums[MOST_ROWS * CPU_GROUP * CPU_PANEL];
  double one = time_of(version[0], &m[0], rows, step, n, 1, sums), end = now_ms() + window;
  time_of(version[1], &m[1], rows, step, n, 1, sums);
  int times = one < 0.2 ? (int)(0.2 / one) + 1 : 1, pairs = 0;
  for (; pairs < MOST_PAIRS && (pairs < LEAST_PAIRS || now_ms() < end); pairs++) {
    for (int i = 0; i < 2; i++) {
      int v = i ^ (pairs & 1);
      ms[v][pairs] = time_of(version[v], &m[v], rows, step, n, times, sums);
    }
    ratio[pairs] = ms[1][pairs] / ms[0][pairs];
  }
  for (int v = 0; v < 2; v++) qsort(ms[v], (size_t)pairs, sizeof(double), ascending);
  qsort(ratio, (size_t)pairs, sizeof(double), ascending);
  printf("%s/%d  %2d rows: %.2f and %.2f us, %d pairs; best %.4f, median %.4f\n", version[0]->name,
         version[0]->activations, n, 1e3 * ms[0][pairs / 2], 1e3 * ms[1][pairs / 2], pairs, ms[1][0] / ms[0][0],
         ratio[pairs / 2]);
  fflush(stdout);
}

static void fail(const char *message) {
  fprintf(stderr, "versions: %s\n", message);
  exit(2);
}

int main(int argc, char **argv) {
  if (argc < 6) fail("usage: versions OLD.so NEW.so OUTPUTS K VARIANT [MS]");
  int outputs = atoi(argv[3]), k = atoi(argv[4]);
  format_fn *format[2];
  row_bytes_fn *row_bytes = NULL;
  for (int v = 0; v < 2; v++) {
    void *library = dlopen(argv[1 + v], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) fail(dlerror());
    *(void **)&format[v] = dlsym(library, "version_format");
    *(void **)&row_bytes = dlsym(library, "version_row_bytes");
  }
  uint64_t state = 88172645463325252u;
  size_t code_bytes = CPU_PANEL * sizeof(float) * (size_t)k;
  char *codes = malloc(code_bytes);
  float *x = malloc(sizeof *x * MOST_ROWS * (size_t)k);
  if (!codes || !x) fail("no memory");
  for (size_t i = 0; i < code_bytes; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    codes[i] = (char)((state & 0x1b) | 0x20); /* as a scale normal in every format */
  }
  for (int i = 0; i < MOST_ROWS * k; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x[i] = (float)(int32_t)state * 0x1p-31f;
  }
  for (int i = 0; format[0](argv[5], i); i++) {
    const cpu_format *version[2] = {format[0](argv[5], i), format[1](argv[5], i)};
    if (!version[0]->activations) continue;
    size_t panel = version[0]->panel_bytes(k), step = version[0]->prepared_bytes(k), row = row_bytes(version[0], k);
    if (!version[1] || strcmp(version[0]->name, version[1]->name) || panel != version[1]->panel_bytes(k) ||
        step != version[1]->prepared_bytes(k))
      fail("the versions have other formats");
    cpu_matrix m[2] = {{version[0], NULL, NULL, k, outputs / CPU_PANEL}};
    char *rows = aligned_alloc(64, MOST_ROWS * step);
    m[0].data = aligned_alloc(64, (size_t)m[0].panels * panel);
    if (!rows || !m[0].data) fail("no memory");
    for (int p = 0; p < m[0].panels; p++) {
      const char *of[CPU_PANEL];
      for (int j = 0; j < CPU_PANEL; j++) of[j] = codes + row * (size_t)j;
      version[0]->pack(m[0].data + panel * (size_t)p, k, of);
    }
    for (int r = 0; r < MOST_ROWS; r++) version[0]->prepare(x + (size_t)r * (size_t)k, k, rows + (size_t)r * step);
    m[1] = m[0];
    m[1].format = version[1];
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      compare(version, m, rows, step, counts[c], argc > 6 ? atof(argv[6]) : 40);
    free(rows), free(m[0].data);
  }
  free(codes), free(x);
  return 0;
}
#endif
