/* Walks over memory: see walk.h. */
#include "measure/walk.h"

#include <stdlib.h>

#define FLUSHES_MS 2.0 /* a pass of this time leaves nothing of a page in the caches: one is like several */

/* next makes a full cycle (Hull and Dobell, 1962). */
void walk_begin(walk_lines *p) {
  for (int i = 0; i < WALK_LINES; i++) p->line[i].next = (197 * i + 139) % WALK_LINES;
}

double walk_ms(const walk_lines *p) {
  double start = dt_clock_ms();
  for (int at = 0, i = 0; i < WALK_LINES; i++) at = *(const volatile int *)&p->line[at].next;
  return dt_clock_ms() - start;
}

dt_status walk_measure(walk_times *w, bench *b, int context, dt_error *err) {
  if (w->n == WALK_TIMES) return DT_OK;
  dt_status status = bench_start(b, context, NULL, err);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  walk_ms(&w->lines); /* passes of other sizes came before */
  for (int i = 0; i < WALK_PAUSE && !status && (!i || b->target_ms < FLUSHES_MS); i++)
    status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[2][w->n] = walk_ms(&w->lines);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[1][w->n] = walk_ms(&w->lines);
  w->ms[0][w->n] = walk_ms(&w->lines);
  w->n += !status;
  return status;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The medians of all: a page meets the same disturbances. */
void walk_costs(walk_times *w, double *walk) {
  for (int i = 0; i < DTL_COST_WALKS; i++) {
    qsort(w->ms[i], (size_t)w->n, sizeof *w->ms[i], by_size);
    double median = w->ms[i][w->n / 2];
    walk[i] = i && walk[i - 1] > median ? walk[i - 1] : median;
  }
}
