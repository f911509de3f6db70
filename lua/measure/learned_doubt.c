/* How far learned times are trusted: see learned.h. */
#include "measure/learned.h"

#include <math.h>

#define FASTER 2.0  /* a pass this many times as fast as another of its size shows that the other was disturbed */
#define SLACK 1.25  /* the same for a pass over fewer rows */
#define ALIKE 2.0   /* the same for others of its class, relative to the estimates */
#define FAR 2.0     /* a time above this multiple of the estimate counts in full only after */
#define CONFIRMED 4 /* this many passes of this process */
#define PATIENT 64  /* times that were not seen among this many target passes lose weight: */
#define HALF 32     /* half of it with each 32 further passes */

static int class_of(learned_kind kind, int i) {
  if (kind == LEARNED_TARGET) return i ? CLASS_ROWS : CLASS_PLAIN;
  return CLASS_DRAFT;
}

/* The logarithm of the ratio between the estimates for the row counts i and j. */
static double estimated_rows(const lessons *l, learned_kind kind, int k, int i, int j) {
  const dtl_costs *c = &l->estimated;
  return log(learned_estimate(c, kind, c->rows[i], c->context[k]) /
             learned_estimate(c, kind, c->rows[j], c->context[k]));
}

/* ---- disturbed passes -------------------------------------------------------------------------------------------- */

/* Drops the ratios above `most`; returns whether there were any. */
static bool drop(learned_place *p, double most) {
  int kept = 0, n = p->n;
  for (int i = 0; i < n; i++)
    if ((double)p->ratio[i] <= most) p->ratio[kept++] = p->ratio[i];
  if (kept == n) return false;
  p->n = p->next = kept;
  if (p->fresh > kept) p->fresh = kept;
  p->stale = true;
  return true;
}

/* Other programs only add time. A fast pass therefore shows that slow passes of its size were disturbed, and that other
 * passes of its class at that time were disturbed, too. A fast pass of plain decoding shows this for all classes. A
 * pass over several rows also shows it for slower passes over fewer rows, and for passes over more rows that took
 * longer than several such passes. */
void learned_doubt(lessons *l, learned_kind kind, int i, learned_place *place, double ratio) {
  const dtl_costs *c = &l->estimated;
  int class = class_of(kind, i);
  l->seen_at[class] = place->seen_at = l->targets;
  bool disturbed = drop(place, ratio + log(FASTER));
  for (int k = 0; k < c->n_contexts; k++)
    for (int j = 0; j < c->n_rows; j++) {
      learned_place *p = &l->place[kind][k][j];
      if (j == i || !p->n) continue; /* most are empty, and this runs after every pass */
      double more = j > i ? log((double)c->rows[j] / c->rows[i]) : 0;
      disturbed |= drop(p, ratio + more + estimated_rows(l, kind, k, i, j) + log(SLACK));
    }
  for (int other = 0; disturbed && other < LEARNED_KINDS; other++)
    for (int k = 0; k < c->n_contexts; k++)
      for (int j = 0; j < c->n_rows; j++)
        if (class == CLASS_PLAIN || class == class_of((learned_kind)other, j))
          drop(&l->place[other][k][j], ratio + log(ALIKE));
}

/* ---- what counts ------------------------------------------------------------------------------------------------- */

/* The ratio of a place, bounded to FAR times the estimate unless it was confirmed. */
static double bounded(learned_place *p, double base) {
  double counted = place_counted(p), most = base + log(FAR);
  return p->fresh < CONFIRMED && counted > most ? most : counted;
}

/* How much slower than estimated this machine is, judging by plain decoding in the context that was seen most often or,
 * if that is unknown, by the fastest passes over several rows. */
static double machine(lessons *l) {
  learned_place *plain = NULL;
  double least = INFINITY;
  for (int k = 0; k < l->estimated.n_contexts; k++)
    for (int i = 0; i < l->estimated.n_rows; i++) {
      learned_place *p = &l->place[LEARNED_TARGET][k][i];
      if (p->n && !i && (!plain || p->n > plain->n)) plain = p;
      if (p->n && i) least = fmin(least, place_counted(p));
    }
  return plain ? bounded(plain, 0) : isfinite(least) ? least : 0;
}

/* The part of its weight that a time keeps if it was last seen at target pass seen_at. */
static double left(const lessons *l, long seen_at) {
  double late = (double)(l->targets - seen_at - PATIENT);
  return late > 0 ? exp2(-late / HALF) : 1;
}

double learned_weight(const lessons *l, const learned_place *p) { return p->n * left(l, p->seen_at); }

bool learned_wants_plain(const lessons *l) { return l->targets - l->seen_at[CLASS_PLAIN] > PATIENT; }

/* Target passes are seen all the time, and those of one size correct the others (shape.c). The times of a draft that is
 * no longer used can only move back towards the estimate. */
double learned_counted(lessons *l, learned_kind kind, int k, int i) {
  learned_place *p = &l->place[kind][k][i];
  int class = class_of(kind, i);
  if (class == CLASS_PLAIN) return bounded(p, 0);
  if (class == CLASS_ROWS) return place_counted(p);
  double base = machine(l), counted = bounded(p, base);
  return counted > base ? base + (counted - base) * left(l, l->seen_at[class]) : counted;
}
