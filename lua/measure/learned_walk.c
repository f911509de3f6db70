/* What a page takes, learned from walks over memory: see learned.h. */
#include "measure/learned.h"
#include "measure/shape.h"

#include <cJSON.h>
#include <math.h>

#define LEAST_MS 1e-6
#define MOST_MS 0.25 /* a longer walk was interrupted: that is twice the time of 512 misses of all caches */
#define FILED_MS 1e3 /* a file may hold longer ones, which teach nothing */
#define MOVED 0.25   /* relative change that counts: walks differ more than passes */
#define MOST_FILED 8 /* times that a walk of a file counts for */

void learned_walk(lessons *l, int passes, double ms) {
  int i = passes < DTL_COST_WALKS ? passes : DTL_COST_WALKS - 1;
  if (ms >= LEAST_MS && ms <= MOST_MS) place_add(&l->walk[i], log(ms / COSTS_WALK[i]));
}

static double counted(learned_place *p, int i) {
  return p->n ? fmax(LEAST_MS, fmin(COSTS_WALK[i] * exp(place_counted(p)), MOST_MS)) : COSTS_WALK[i];
}

void learned_walk_costs(lessons *l, double *walk) {
  for (int i = 0; i < DTL_COST_WALKS; i++) walk[i] = fmax(counted(&l->walk[i], i), i ? walk[i - 1] : 0);
}

bool learned_walk_moved(const double *a, const double *b) {
  for (int i = 0; i < DTL_COST_WALKS; i++)
    if (fabs(a[i] - b[i]) > MOVED * b[i]) return true;
  return false;
}

/* [ms, times] each. */
void learned_walk_json(lessons *l, cJSON *root) {
  cJSON *list = cJSON_AddArrayToObject(root, "walk");
  for (int i = 0; i < DTL_COST_WALKS; i++) {
    const double entry[] = {counted(&l->walk[i], i), l->walk[i].n};
    cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(entry, 2));
  }
}

static bool take_walk(lessons *l, int i, const cJSON *entry) {
  const cJSON *ms = cJSON_GetArrayItem(entry, 0), *times = cJSON_GetArrayItem(entry, 1);
  if (cJSON_GetArraySize(entry) != 2 || !cJSON_IsNumber(ms) || !cJSON_IsNumber(times)) return false;
  double t = ms->valuedouble, n = times->valuedouble;
  if (!(t >= LEAST_MS && t <= FILED_MS) || !(n >= 0 && n <= LEARNED_KEPT)) return false;
  for (int k = 0; k < n && k < MOST_FILED; k++) learned_walk(l, i, t);
  return true;
}

bool learned_walk_parse(lessons *l, const cJSON *root) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "walk");
  if (!list) return true; /* written before walks were timed */
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != DTL_COST_WALKS) return false;
  for (int i = 0; i < DTL_COST_WALKS; i++)
    if (!take_walk(l, i, cJSON_GetArrayItem(list, i))) return false;
  return true;
}
