/* Learns the numbers of dt_tree_calibrate while text is generated: see tree.h. Each number is an online regression: a
 * step is the error divided by the evidence so far (`leans`, `slopes`, `shifts`, `shares`). The constants below
 * are the evidence at the beginning. */
#include "system/need.h"
#include "tree/tree.h"

#include <math.h>
#include <string.h>

#define SCALE 0.6   /* targets are larger than drafts, and more certain */
#define LEAN 10     /* for lean 0 */
#define SLOPE 20    /* for slope 1, or COUPLED */
#define SHIFT 4     /* for shift 0 */
#define SHARE 1     /* for share 1 */
#define KEPT 2      /* a resumed learner keeps at most this many times the initial evidence, */
#define SHARES 8    /* and for shares this many times as much again */
#define COUPLED 0.7 /* slope of guesses made with the noise */
#define AMONG 8     /* candidates compared for lean, and for share */
#define LEAST_SHARE 0.05
#define SUREST (1 - 1e-6)
#define LEAST_OWN -100.0 /* least log-probability of the draft that is used: lower ones carry no information */

static double clip(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

dt_tree_learner dt_tree_learner_new(bool share) {
  return (dt_tree_learner){.slope = 1,
                           .share = 1,
                           .leans = LEAN,
                           .slopes = SLOPE,
                           .shifts = SHIFT,
                           .came = SHARE,
                           .shares = share ? SHARE : 0,
                           .said_slope = 1,
                           .said_share = 1};
}

void dt_tree_learner_state(const dt_tree_learner *l, double state[DT_TREE_LEARNER_STATE]) {
  const double all[DT_TREE_LEARNER_STATE] = {l->lean,   l->slope,  l->shift, l->share, l->leans,
                                             l->slopes, l->shifts, l->came,  l->shares};
  memcpy(state, all, sizeof all);
}

/* Limits the evidence to `times` times the initial one. */
static double evidence(double x, double first, double times) { return clip(x, first, times * first); }

dt_tree_learner dt_tree_learner_resume(bool share, const double state[DT_TREE_LEARNER_STATE]) {
  dt_tree_learner l = dt_tree_learner_new(share);
  l.lean = clip(state[0], -0.5, 0.5);
  l.slope = clip(state[1], 0.1, 3), l.said_slope = l.slope;
  l.shift = clip(state[2], -6, 6), l.said_shift = l.shift;
  l.leans = evidence(state[4], LEAN, KEPT);
  l.slopes = evidence(state[5], SLOPE, KEPT);
  l.shifts = evidence(state[6], SHIFT, KEPT);
  if (!share || !(state[7] > 0 && state[8] > 0)) return l;
  l.shares = evidence(state[8], SHARE, KEPT * SHARES);
  l.share = clip(state[7] / state[8], LEAST_SHARE, 1), l.said_share = l.share;
  l.came = l.share * l.shares;
  return l;
}

dt_status dt_tree_calibrate_learned(dt_tree_learner *l, dt_tree *t, bool coupled, dt_error *err) {
  NEED(l, "learner");
  if (l->slopes == SLOPE && l->slope == 1 && coupled) l->slope = COUPLED; /* until something is learned */
  l->said_slope = l->slope, l->said_shift = l->shift, l->said_share = l->share;
  return dt_tree_calibrate(t, (dt_tree_calibration){SCALE, l->lean, l->slope, l->shift, l->share}, err);
}

/* The likeliest candidate had probability p; `came`: it was the next token. Moves slope and shift by one step of a
 * logistic regression on its log-odds before calibration. */
static void learn_odds(dt_tree_learner *l, double p, bool came) {
  p = clip(p, 1 - SUREST, SUREST);
  double odds = (log(p / (1 - p)) - l->said_shift) / l->said_slope; /* before calibration */
  double wrong = (came ? 1 : 0) - p, known = p * (1 - p);
  l->slopes += known * odds * odds;
  l->shifts += known;
  l->slope = clip(l->slope + wrong * odds / l->slopes, 0.1, 3);
  l->shift = clip(l->shift + wrong / l->shifts, -6, 6);
}

/* The next token was not the likeliest candidate but candidate i, or none (i == d->count). The other candidates had
 * probability `left` together; share is the part of it that came true, weighted by each candidate's probability. */
static void learn_share(dt_tree_learner *l, const dt_tree_draft *d, int i) {
  double left = (1 - exp((double)d->logp[0])) * l->said_share;
  for (int j = 1; j < AMONG && j < d->count && left > 0; j++) {
    double said = exp((double)d->logp[j]) / left;
    l->shares += said * said;
    if (j == i) l->came += said;
  }
  l->share = clip(l->came / l->shares, LEAST_SHARE, 1);
}

/* The next token was candidate i. Lean is right if the draft's log-probability of that candidate (own) equals the mean
 * of all candidates, weighted by their probabilities: the difference is the gradient of the log-likelihood in lean. */
static void learn_lean(dt_tree_learner *l, const dt_tree_draft *d, int i) {
  double sum = 0, mean = 0, square = 0;
  int j = 0;
  for (; j < AMONG && j < d->count && !((double)d->own[j] < LEAST_OWN); j++) {
    double said = exp((double)d->logp[j]), own = (double)d->own[j];
    sum += said;
    mean += said * own;
    square += said * own * own;
  }
  if (i >= j) return;
  mean /= sum;
  l->leans += (square / sum - mean * mean) / (SCALE * SCALE);
  l->lean = clip(l->lean + ((double)d->own[i] - mean) / SCALE / l->leans, -0.5, 0.5);
}

void dt_tree_learn(dt_tree_learner *l, const dt_tree *t, int u, int32_t token, bool coupled) {
  const dt_tree_draft *d = dt_tree_draft_of(t, u);
  if (!l || !d || d->count == 0) return;
  int i = 0;
  while (i < d->count && d->token[i] != token) i++;
  learn_odds(l, exp((double)d->logp[0]), i == 0);
  if (i > 0 && l->shares > 0) learn_share(l, d, i);
  if (coupled && i < d->count) learn_lean(l, d, i); /* without noise a lean would be a scale */
}
