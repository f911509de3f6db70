/* Passes on cores of unequal speed, emulated on equal ones:
 *
 *   bench_slow_core [-t THREADS] [-s TIMES] [-n PASSES] MODEL     THREADS 2, TIMES 2, PASSES 200
 *
 * The last processor computes matrix products TIMES as slowly: after each product it waits TIMES - 1 times as long as
 * the product took. Attention and norms keep their speed. Prints the milliseconds of a pass over 1, 4 and 64 rows:
 * medians, and quartiles. */
#include "cpu.h"
#include "internal.h"
#include "leaf_rows.h"
#include "model/model.h"
#include "pair/backends.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROWS = 64, CONTEXT = 64, FORMATS = 16, SETTLE = 30 };

static dt_error err;

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_slow_core: %s\n", err.message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- the slow core ----------------------------------------------------------------------------------------------- */

static double slowness = 2;
static int slow_cpu;

/* A format whose products take longer on the slow core; `format` comes first. */
typedef struct {
  cpu_format format;
  const cpu_format *real;
} slowed;

/* Leaves the units of the core to another thread on it, as a slow core would. */
static void rest(void) {
#ifdef __x86_64__
  for (int i = 0; i < 8; i++) __builtin_ia32_pause();
#endif
}

static void multiply_slowly(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                            size_t ld) {
  const double start = now();
  ((const slowed *)(const void *)m->format)->real->multiply(m, first, count, x, step, n, sums, ld);
  if (slowness == 1 || sched_getcpu() != slow_cpu) return;
  for (const double end = start + slowness * (now() - start); now() < end;) rest();
}

static void slow_down(cpu_matrix *m) {
  static slowed all[FORMATS];
  static int count;
  int i = 0;
  if (!m->data) return;
  while (i < count && all[i].real != m->format) i++;
  if (i == count) {
    if (count == FORMATS) exit(1);
    all[count++] = (slowed){*m->format, m->format};
    all[i].format.multiply = multiply_slowly;
  }
  m->format = &all[i].format;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void run(dt_weights *w, dt_cache *cache, int n) {
  int32_t token[MOST_ROWS], position[MOST_ROWS], slot[MOST_ROWS], one[MOST_ROWS], best[MOST_ROWS], index[MOST_ROWS];
  int32_t zero[MOST_ROWS] = {0};
  for (int i = 0; i < n; i++) token[i] = i, position[i] = CONTEXT, slot[i] = CONTEXT + i, one[i] = 1, index[i] = i;
  dt_rows rows = leaf_rows(n, token, position, zero, slot, position, one);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = n, .row = index, .argmax = best};
  must(dt_cpu_ops.forward(w, cache, &rows, &out, &err));
}

static int rising(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Measures passes over n rows, after some that are not counted. */
static void measure(dt_weights *w, dt_cache *cache, int n, int passes) {
  double *ms = calloc((size_t)passes, sizeof *ms);
  if (!ms) exit(1);
  for (int i = -SETTLE; i < passes; i++) {
    const double start = now();
    run(w, cache, n);
    if (i >= 0) ms[i] = now() - start;
  }
  qsort(ms, (size_t)passes, sizeof *ms, rising);
  printf("%d rows: %.3f ms, %.3f to %.3f\n", n, ms[passes / 2], ms[passes / 4], ms[passes * 3 / 4]);
  free(ms);
}

int main(int argc, char **argv) {
  int threads = 2, passes = 200;
  for (int option; (option = getopt(argc, argv, "t:s:n:")) != -1;) switch (option) {
    case 't': threads = atoi(optarg); break;
    case 's': slowness = atof(optarg); break;
    case 'n': passes = atoi(optarg); break;
    default: return 2;
    }
  if (optind + 1 != argc || passes < 1 || slowness < 1) return fprintf(stderr, "usage: see the source\n"), 2;
  model *m;
  dt_backend *backend;
  dt_weights *w;
  dt_cache *cache;
  slow_cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
  must(model_open(argv[optind], &m, &err));
  must(dt_cpu_ops.open(&(dt_backend_options){.threads = threads}, &backend, &err));
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof first, &first); /* of this thread: a system would not put it on a slow core either */
  must(dt_cpu_ops.upload(backend, model_desc(m), NULL, &w, &err));
  must(dt_cpu_ops.create_cache(w, 1, CONTEXT + MOST_ROWS, &cache, &err));
  for (int layer = 0; layer < w->shape.layers; layer++) {
    cpu_layer *l = &w->layer[layer];
    cpu_matrix *all[] = {&l->q, &l->k, &l->v, &l->up, &l->o, &l->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) slow_down(all[i]);
  }
  slow_down(&w->unembed);
  for (int n = 1; n <= MOST_ROWS; n *= n == 1 ? 4 : 16) measure(w, cache, n, passes);
  dt_cpu_ops.free_cache(cache);
  dt_cpu_ops.free_weights(w);
  dt_cpu_ops.close(backend);
  model_close(m);
  return 0;
}
