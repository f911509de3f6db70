/* What a page takes, learned from walks over memory: see learned.h. */
#include "measure/learned.h"
#include "measure/shape.h"

#include <cJSON.h>
#include <math.h>

#define LEAST_MS 1e-6
#define MOST_MS 1e3  /* a longer walk was interrupted */
#define MOVED 0.25   /* relative change that counts: walks differ more than passes */
#define MOST_FILED 8 /* times that a walk of a file counts for */

void learned_page(lessons *l, int passes, double ms) {
  int i = passes < DTL_COST_PAGES ? passes : DTL_COST_PAGES - 1;
  if (ms >= LEAST_MS && ms <= MOST_MS) shape_add(&l->page[i], log(ms / COSTS_PAGE[i]));
}

static double counted(learned_place *p, int i) {
  return p->n ? fmax(LEAST_MS, fmin(COSTS_PAGE[i] * exp(shape_counted(p)), MOST_MS)) : COSTS_PAGE[i];
}

void learned_page_costs(lessons *l, double *page) {
  for (int i = 0; i < DTL_COST_PAGES; i++) page[i] = fmax(counted(&l->page[i], i), i ? page[i - 1] : 0);
}

bool learned_page_moved(const double *a, const double *b) {
  for (int i = 0; i < DTL_COST_PAGES; i++)
    if (fabs(a[i] - b[i]) > MOVED * b[i]) return true;
  return false;
}

/* [ms, times] each. */
void learned_page_json(lessons *l, cJSON *root) {
  cJSON *list = cJSON_AddArrayToObject(root, "page");
  for (int i = 0; i < DTL_COST_PAGES; i++) {
    const double entry[] = {counted(&l->page[i], i), l->page[i].n};
    cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(entry, 2));
  }
}

static bool take_walk(lessons *l, int i, const cJSON *entry) {
  const cJSON *ms = cJSON_GetArrayItem(entry, 0), *times = cJSON_GetArrayItem(entry, 1);
  if (cJSON_GetArraySize(entry) != 2 || !cJSON_IsNumber(ms) || !cJSON_IsNumber(times)) return false;
  double t = ms->valuedouble, n = times->valuedouble;
  if (!(t >= LEAST_MS && t <= MOST_MS) || !(n >= 0 && n <= LEARNED_KEPT)) return false;
  for (int k = 0; k < n && k < MOST_FILED; k++) learned_page(l, i, t);
  return true;
}

bool learned_page_parse(lessons *l, const cJSON *root) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "page");
  if (!list) return true; /* written before walks were timed */
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != DTL_COST_PAGES) return false;
  for (int i = 0; i < DTL_COST_PAGES; i++)
    if (!take_walk(l, i, cJSON_GetArrayItem(list, i))) return false;
  return true;
}
