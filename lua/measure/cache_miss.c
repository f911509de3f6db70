/* The cost of cache misses: see cache_miss.h. */
#include "measure/cache_miss.h"

#include "measure/median.h"

#define FLUSHES_MS 2.0 /* a pass of this time evicts all of a policy from the caches, so one pass is like several */

/* Links the lines to one cycle through all of them, by a linear congruential generator of full period (Hull and Dobell,
 * 1962). */
void cache_miss_begin(cache_miss_lines *p) {
  for (int i = 0; i < CACHE_MISS_LINES; i++) p->line[i].next = (197 * i + 139) % CACHE_MISS_LINES;
}

double cache_miss_ms(const cache_miss_lines *p) {
  double start = dt_clock_ms();
  for (int at = 0, i = 0; i < CACHE_MISS_LINES; i++) at = *(const volatile int *)&p->line[at].next;
  return dt_clock_ms() - start;
}

dt_status cache_miss_measure(cache_miss_times *w, bench *b, int context, dt_error *err) {
  if (w->n == CACHE_MISS_TIMES) return DT_OK;
  dt_status status = bench_start(b, context, NULL, err);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  cache_miss_ms(&w->lines); /* passes of other sizes came before */
  for (int i = 0; i < CACHE_MISS_PAUSE && !status && (!i || b->target_ms < FLUSHES_MS); i++)
    status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[2][w->n] = cache_miss_ms(&w->lines);
  if (!status) status = bench_sample(b, BENCH_PLAIN, err);
  w->ms[1][w->n] = cache_miss_ms(&w->lines);
  w->ms[0][w->n] = cache_miss_ms(&w->lines);
  w->n += !status;
  return status;
}

/* Takes the median of all times, disturbed ones included, since a policy meets the same disturbances. */
void cache_miss_costs(cache_miss_times *w, double *cache_miss) {
  for (int i = 0; i < DTL_COST_MISSES; i++) {
    sort_ascending(w->ms[i], w->n);
    double median = w->ms[i][w->n / 2];
    cache_miss[i] = i && cache_miss[i - 1] > median ? cache_miss[i - 1] : median;
  }
}
