/* Measures the cost of cache misses. Policy overhead consists mostly of cache misses, since passes evict the policy's
 * memory from the processor's caches. It is therefore estimated as a multiple of the time of reading 32 KiB of evicted
 * memory (lua/dt/policy/pass_costs.lua). */
#ifndef DTL_CACHE_MISS_H
#define DTL_CACHE_MISS_H

#include "measure/bench.h"

#define CACHE_MISS_LINES 512 /* cache lines of 64 bytes: together about the size of a first-level cache */
#define CACHE_MISS_PAUSE 8   /* passes after which a read counts as one after a pause */
#define CACHE_MISS_TIMES 64  /* maximum number of measurements */

typedef struct {
  struct {
    int next;
    char rest[60];
  } line[CACHE_MISS_LINES];
} cache_miss_lines;

/* Prepares the lines for cache_miss_ms. */
void cache_miss_begin(cache_miss_lines *p);

/* Reads all lines in an order that processors cannot predict. Returns the time in ms. */
double cache_miss_ms(const cache_miss_lines *p);

typedef struct {
  cache_miss_lines lines;
  int n;
  double ms[DTL_COST_MISSES][CACHE_MISS_TIMES]; /* as in dtl_costs */
} cache_miss_times;

/* Times a read of each kind between passes of plain decoding after `context` tokens. */
dt_status cache_miss_measure(cache_miss_times *w, bench *b, int context, dt_error *err);

/* Fills cache_miss of dtl_costs from at least one measurement. Sorts the times. */
void cache_miss_costs(cache_miss_times *w, double *cache_miss);

#endif
