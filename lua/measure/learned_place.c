/* The times of a place, and the estimate for its passes: see learned.h. */
#include "measure/learned.h"
#include "measure/median.h"

#include <cJSON.h>

#define QUANTILE 0.35

void place_add(learned_place *p, double ratio) {
  p->ratio[p->next] = (float)ratio;
  p->next = (p->next + 1) % LEARNED_KEPT;
  if (p->n < LEARNED_KEPT) p->n++;
  p->stale = true;
}

double place_counted(learned_place *p) {
  double sorted[LEARNED_KEPT];
  if (!p->stale) return (double)p->counts;
  for (int i = 0; i < p->n; i++) sorted[i] = (double)p->ratio[i];
  sort_ascending(sorted, p->n);
  p->counts = (float)sorted[(int)(QUANTILE * (p->n - 1) + 0.5)];
  p->stale = false;
  return (double)p->counts;
}

cJSON *place_entry(double ms, int times) {
  const double entry[] = {ms, times};
  return cJSON_CreateDoubleArray(entry, 2);
}

bool place_entry_read(const cJSON *entry, double *ms, int *times) {
  const cJSON *first = cJSON_GetArrayItem(entry, 0), *second = cJSON_GetArrayItem(entry, 1);
  if (cJSON_GetArraySize(entry) != 2 || !cJSON_IsNumber(first) || !cJSON_IsNumber(second)) return false;
  *ms = first->valuedouble, *times = second->valueint;
  return second->valuedouble >= 0 && second->valuedouble <= LEARNED_KEPT;
}

double learned_estimate(const dtl_costs *c, learned_kind kind, double rows, int context) {
  if (kind == LEARNED_TARGET) return costs_pass(c, c->target, rows, context);
  double ms = costs_pass(c, c->draft, rows, context);
  return kind == LEARNED_FIRST ? ms + costs_first(c, c->batch, context) - costs_pass(c, c->draft, 1, context) : ms;
}
