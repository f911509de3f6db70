/* Derives costs from measured times: see shape.h. */
#include "measure/shape.h"

#include <math.h>

/* The distance in log(rows) from a known row count at which a single time counts half. Passes of rare sizes take 10 %
 * longer. */
#define DOUBT 0.5
#define ANCHOR 2 /* a context's level counts as if it had also this many times of level 0 */
#define OWN 16   /* with this many times, a place's own value counts as much as shape and level */

typedef struct {
  double mean[COSTS_ROWS], times[COSTS_ROWS]; /* mean of a row count's ratios without levels; number of ratios */
  double shape[COSTS_ROWS];                   /* ms at the first context */
  bool known[COSTS_ROWS];                     /* whether shape is known */
  double level[DTL_COST_CONTEXTS];            /* logarithms */
} fit;

/* ---- the shape --------------------------------------------------------------------------------------------------- */

/* The index of the next known row count from i, in the direction step; -1 or n_rows: there is none. */
static int next_known(const fit *f, int n_rows, int i, int step) {
  do i += step;
  while (i >= 0 && i < n_rows && !f->known[i]);
  return i;
}

/* The value at row count i by the known ones: interpolated linearly between its neighbours, or extrapolated from the
 * last two. */
static double predicted(const dtl_costs *c, const double *estimated, const fit *f, int i) {
  int below = next_known(f, c->n_rows, i, -1), above = next_known(f, c->n_rows, i, 1);
  if (below < 0) return above == c->n_rows ? estimated[i] : estimated[i] * f->shape[above] / estimated[above];
  int other = above < c->n_rows ? above : next_known(f, c->n_rows, below, -1);
  if (other < 0) return estimated[i] * f->shape[below] / estimated[below];
  double slope = (f->shape[other] - f->shape[below]) / (c->rows[other] - c->rows[below]);
  return f->shape[below] + fmax(slope, 0) * (c->rows[i] - c->rows[below]);
}

/* The weight of row count i's own mean; less if it was rarely seen and is near a known row count. */
static double belief(const lessons *l, const fit *f, int i) {
  double gap = INFINITY;
  for (int j = 0; j < l->estimated.n_rows; j++)
    if (f->known[j]) gap = fmin(gap, fabs(l->log_rows[i] - l->log_rows[j]));
  return isinf(gap) ? 1 : gap * gap / (gap * gap + DOUBT * DOUBT / f->times[i]);
}

/* Finds the shape from the contexts first to last. Row counts are added one by one, beginning with the one that was
 * seen most often. */
static void find_shape(lessons *l, learned_kind kind, const double *estimated, int first, int last, fit *f) {
  const dtl_costs *c = &l->estimated;
  for (int i = 0; i < c->n_rows; i++) {
    f->mean[i] = f->times[i] = 0, f->known[i] = false;
    for (int k = first; k <= last; k++) {
      learned_place *p = &l->place[kind][k][i];
      double weight = learned_weight(l, p);
      if (p->n) f->times[i] += weight, f->mean[i] += weight * (learned_counted(l, kind, k, i) - f->level[k]);
    }
    if (f->times[i] > 0) f->mean[i] /= f->times[i];
  }
  for (;;) {
    int best = -1;
    for (int i = 0; i < c->n_rows; i++)
      if (!f->known[i] && f->times[i] > (best < 0 ? 0 : f->times[best])) best = i;
    if (best < 0) break;
    double line = predicted(c, estimated, f, best), own = estimated[best] * exp(f->mean[best]);
    f->shape[best] = line + belief(l, f, best) * (own - line);
    f->known[best] = true;
  }
  for (int i = 0; i < c->n_rows; i++)
    if (!f->known[i]) f->shape[i] = predicted(c, estimated, f, i);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* Finds the level of each context: its times relative to the shape. A context without times takes the level of the
 * context before it, or the first known level. */
static void find_levels(lessons *l, learned_kind kind, const double *estimated, fit *f) {
  const dtl_costs *c = &l->estimated;
  int first = -1;
  for (int k = 0; k < c->n_contexts; k++) {
    double sum = 0, times = 0;
    for (int i = 0; i < c->n_rows; i++) {
      learned_place *p = &l->place[kind][k][i];
      double weight = learned_weight(l, p);
      if (p->n) times += weight, sum += weight * (learned_counted(l, kind, k, i) - log(f->shape[i] / estimated[i]));
    }
    if (times > 0 && first < 0) first = k;
    f->level[k] = times > 0 ? sum / (times + ANCHOR) : k > 0 ? f->level[k - 1] : 0;
  }
  for (int k = 0; k < first; k++) f->level[k] = f->level[first];
}

/* The context whose times cover the most row counts. */
static int richest(lessons *l, learned_kind kind) {
  const dtl_costs *c = &l->estimated;
  int best = 0, most = 0;
  for (int k = 0; k < c->n_contexts; k++) {
    int sizes = 0;
    for (int i = 0; i < c->n_rows; i++) sizes += l->place[kind][k][i].n > 0;
    if (sizes > most) most = sizes, best = k;
  }
  return best;
}

void shape_costs(lessons *l, learned_kind kind, const costs_of estimated, costs_of ms) {
  const dtl_costs *c = &l->estimated;
  fit f = {0};
  int rich = richest(l, kind);
  find_shape(l, kind, estimated[0], rich, rich, &f); /* gives first levels, from which the final shape is found */
  find_levels(l, kind, estimated[0], &f);
  find_shape(l, kind, estimated[0], 0, c->n_contexts - 1, &f);
  find_levels(l, kind, estimated[0], &f);
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++) {
      learned_place *p = &l->place[kind][k][i];
      double expected = log(f.shape[i] / estimated[0][i]) + f.level[k];
      double weight = learned_weight(l, p);
      double own = p->n ? weight / (weight + OWN) * (learned_counted(l, kind, k, i) - expected) : 0;
      ms[k][i] = estimated[k][i] * exp(expected + own);
    }
}
