/* The cost of cache misses. Most of a policy's overhead is the wait for memory that passes have evicted from the
 * processor's caches, so it is estimated as a multiple of the time that it takes to read 32 KiB of such memory
 * (lua/dt/policy/pass_costs.lua). */
#ifndef DTL_CACHE_MISS_H
#define DTL_CACHE_MISS_H

#include "measure/bench.h"

#define CACHE_MISS_LINES 512 /* of 64 bytes: as much as the nearest cache holds */
#define CACHE_MISS_PAUSE 8   /* passes after which a read counts as one after a pause */
#define CACHE_MISS_TIMES 64  /* measured at most */

typedef struct {
  struct {
    int next;
    char rest[60];
  } line[CACHE_MISS_LINES];
} cache_miss_lines;

void cache_miss_begin(cache_miss_lines *p);

/* Milliseconds of a read of all lines in an order that no processor predicts. */
double cache_miss_ms(const cache_miss_lines *p);

typedef struct {
  cache_miss_lines lines;
  int n;
  double ms[DTL_COST_MISSES][CACHE_MISS_TIMES]; /* as in dtl_costs */
} cache_miss_times;

/* Times a read of each kind between passes of plain decoding after `context` tokens. */
dt_status cache_miss_measure(cache_miss_times *w, bench *b, int context, dt_error *err);

/* Fills the cache misses of costs from at least one measurement. Sorts the times. */
void cache_miss_costs(cache_miss_times *w, double *cache_miss);

#endif
