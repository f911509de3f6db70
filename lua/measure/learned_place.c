/* The times of a place, and the estimate for its passes: see learned.h. */
#include "measure/learned.h"

#include <stdlib.h>
#include <string.h>

#define QUANTILE 0.35

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

void place_add(learned_place *p, double ratio) {
  p->ratio[p->next] = (float)ratio;
  p->next = (p->next + 1) % LEARNED_KEPT;
  if (p->n < LEARNED_KEPT) p->n++;
  p->stale = true;
}

double place_counted(learned_place *p) {
  float sorted[LEARNED_KEPT];
  if (!p->stale) return (double)p->counts;
  memcpy(sorted, p->ratio, sizeof sorted);
  qsort(sorted, (size_t)p->n, sizeof *sorted, by_size);
  p->counts = sorted[(int)(QUANTILE * (p->n - 1) + 0.5)];
  p->stale = false;
  return (double)p->counts;
}

double learned_estimate(const dtl_costs *c, learned_kind kind, double rows, int context) {
  if (kind == LEARNED_TARGET) return costs_pass(c, c->target, rows, context);
  int d = learned_draft_of(kind);
  double ms = costs_pass(c, c->draft[d], rows, context);
  return learned_is_first(kind) ? ms + costs_first(c, d, c->batch, context) - costs_pass(c, c->draft[d], 1, context)
                                : ms;
}
