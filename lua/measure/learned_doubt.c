/* What learned times are worth: see learned.h. */
#include "measure/learned.h"

#include <math.h>

#define FASTER 2.0  /* times as fast as another pass of its size: that one was disturbed; */
#define SLACK 1.25  /* the same of a pass over fewer rows; */
#define ALIKE 2.0   /* then the same of all of its class, by what bytes let expect */
#define FAR 2.0     /* times what bytes let expect: counts only after */
#define CONFIRMED 4 /* passes of this process */
#define PATIENT 64  /* passes of the target after which what was not seen among them is doubted; */
#define HALF 32     /* the weight halves with each 32 passes more */

static int class_of(learned_kind kind, int i) {
  if (kind == LEARNED_TARGET) return i ? CLASS_ROWS : CLASS_PLAIN;
  return kind <= LEARNED_FIRST ? CLASS_DRAFT : CLASS_DRAFT2;
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

/* Other programs only add time. So a fast pass shows that slow ones of its size were disturbed, and so were others of
 * its class at that time; a fast pass of plain decoding shows it of all. A pass over several rows shows it of passes
 * over fewer, which take no longer, and of passes over more, which take no longer than several of it. */
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

/* At most FAR times what bytes let expect, unless it was confirmed. */
static double bounded(learned_place *p, double base) {
  double counted = place_counted(p), most = base + log(FAR);
  return p->fresh < CONFIRMED && counted > most ? most : counted;
}

/* How much slower than estimated this machine is, by plain decoding in the context that was seen most often; where none
 * is known, by the passes over several rows that were fastest. */
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

/* What is left of something that was seen last at that target pass. */
static double left(const lessons *l, long seen_at) {
  double late = (double)(l->targets - seen_at - PATIENT);
  return late > 0 ? exp2(-late / HALF) : 1;
}

double learned_weight(const lessons *l, const learned_place *p) { return p->n * left(l, p->seen_at); }

bool learned_wants_plain(const lessons *l) { return l->targets - l->seen_at[CLASS_PLAIN] > PATIENT; }

/* The target's passes are seen all the time, and those of one size correct others (shape.c). Nothing but bytes corrects
 * a draft that is no longer asked. */
double learned_counted(lessons *l, learned_kind kind, int k, int i) {
  learned_place *p = &l->place[kind][k][i];
  int class = class_of(kind, i);
  if (class == CLASS_PLAIN) return bounded(p, 0);
  if (class == CLASS_ROWS) return place_counted(p);
  double base = machine(l), counted = bounded(p, base);
  return counted > base ? base + (counted - base) * left(l, l->seen_at[class]) : counted;
}
