/* Walks over memory: see page.h. */
#include "measure/page.h"

#include <stdlib.h>

#define FLUSHES_MS 2.0 /* a pass of this time leaves nothing of a page in the caches: one is like several */

/* next makes a full cycle (Hull and Dobell, 1962). */
void page_begin(page_lines *p) {
  for (int i = 0; i < PAGE_LINES; i++) p->line[i].next = (197 * i + 139) % PAGE_LINES;
}

double page_walk(const page_lines *p) {
  double start = dt_clock_ms();
  for (int at = 0, i = 0; i < PAGE_LINES; i++) at = *(const volatile int *)&p->line[at].next;
  return dt_clock_ms() - start;
}

dt_status page_measure(page_walks *w, bench *b, int context, dt_error *err) {
  if (w->n == PAGE_WALKS) return DT_OK;
  dt_status status = bench_start(b, context, NULL, err);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  page_walk(&w->lines); /* passes of other sizes came before */
  for (int i = 0; i < PAGE_REST && !status && (!i || b->target_ms < FLUSHES_MS); i++)
    status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[2][w->n] = page_walk(&w->lines);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[1][w->n] = page_walk(&w->lines);
  w->ms[0][w->n] = page_walk(&w->lines);
  w->n += !status;
  return status;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The medians of all: a page meets the same disturbances. */
void page_costs(page_walks *w, double *page) {
  for (int i = 0; i < DTL_COST_PAGES; i++) {
    qsort(w->ms[i], (size_t)w->n, sizeof *w->ms[i], by_size);
    double median = w->ms[i][w->n / 2];
    page[i] = i && page[i - 1] > median ? page[i - 1] : median;
  }
}
