/* The cost of cache misses, learned from timed reads of memory: see learned.h. */
#include "measure/learned.h"
#include "measure/shape.h"

#include <cJSON.h>
#include <math.h>

#define LEAST_MS 1e-6
#define MOST_MS 0.25 /* a longer read was interrupted: 512 misses of all caches take half of this */
#define FILED_MS 1e3 /* longer times in a file are ignored */
#define MOVED 0.25   /* relative change that counts: reads vary more than passes */
#define MOST_FILED 8 /* an entry of a file counts as at most this many times */

void learned_cache_miss(lessons *l, int passes, double ms) {
  int i = passes < DTL_COST_MISSES ? passes : DTL_COST_MISSES - 1;
  if (ms >= LEAST_MS && ms <= MOST_MS) place_add(&l->cache_miss[i], log(ms / COSTS_CACHE_MISS[i]));
}

static double counted(learned_place *p, int i) {
  return p->n ? fmax(LEAST_MS, fmin(COSTS_CACHE_MISS[i] * exp(place_counted(p)), MOST_MS)) : COSTS_CACHE_MISS[i];
}

void learned_cache_miss_costs(lessons *l, double *cache_miss) {
  for (int i = 0; i < DTL_COST_MISSES; i++)
    cache_miss[i] = fmax(counted(&l->cache_miss[i], i), i ? cache_miss[i - 1] : 0);
}

bool learned_cache_miss_moved(const double *a, const double *b) {
  for (int i = 0; i < DTL_COST_MISSES; i++)
    if (fabs(a[i] - b[i]) > MOVED * b[i]) return true;
  return false;
}

void learned_cache_miss_json(lessons *l, cJSON *root) {
  cJSON *list = cJSON_AddArrayToObject(root, "cache_miss");
  for (int i = 0; i < DTL_COST_MISSES; i++)
    cJSON_AddItemToArray(list, place_entry(counted(&l->cache_miss[i], i), l->cache_miss[i].n));
}

static bool take_cache_miss(lessons *l, int i, const cJSON *entry) {
  double ms;
  int times;
  if (!place_entry_read(entry, &ms, &times) || !(ms >= LEAST_MS && ms <= FILED_MS)) return false;
  for (int k = 0; k < times && k < MOST_FILED; k++) learned_cache_miss(l, i, ms);
  return true;
}

bool learned_cache_miss_parse(lessons *l, const cJSON *root) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "cache_miss");
  if (!list) return true; /* no read was timed */
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != DTL_COST_MISSES) return false;
  for (int i = 0; i < DTL_COST_MISSES; i++)
    if (!take_cache_miss(l, i, cJSON_GetArrayItem(list, i))) return false;
  return true;
}
