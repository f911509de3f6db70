/* Calibrates the draft's probabilities: see tree.h. */
#include "tree/tree.h"

#include <math.h>

static bool is_same(const dt_tree_calibration *s) {
  return s->scale == 1 && s->lean == 0 && s->slope == 1 && s->shift == 0 && s->share == 1;
}

static dt_status check(const char *name, double x, double low, double high, dt_error *err) {
  if (x >= low && x <= high) return DT_OK;
  return dt_fail(err, DT_ESTATE, "calibrate: %s %g is out of range: %g..%g", name, x, low, high);
}

dt_status dt_tree_calibrate(dt_tree *t, dt_tree_calibration calibration, dt_error *err) {
  dt_status s = dt_tree_check_open(t, err);
  if (!s) s = check("scale", calibration.scale, 0.1, 10, err);
  if (!s) s = check("lean", calibration.lean, -1, 1, err);
  if (!s) s = check("slope", calibration.slope, 0.1, 10, err);
  if (!s) s = check("shift", calibration.shift, -10, 10, err);
  if (!s) s = check("share", calibration.share, 0.01, 1, err);
  if (!s) t->calibration = calibration;
  return s;
}

/* Sorts candidate i, of score x, into those before it, by falling score; ties keep their order. */
static void sort_in(dt_tree_draft *d, double *score, int i, double x) {
  int32_t token = d->token[i];
  float own = d->own[i];
  for (; i > 0 && score[i - 1] < x; i--)
    score[i] = score[i - 1], d->token[i] = d->token[i - 1], d->own[i] = d->own[i - 1];
  score[i] = x, d->token[i] = token, d->own[i] = own;
}

void dt_tree_calibrate_draft(const dt_tree *t, dt_tree_draft *d) {
  if (!t || !d) return;
  const dt_tree_calibration *s = &t->calibration;
  int n = d->count;
  if (is_same(s) || n <= 0) return;
  double score[DT_CANDIDATES], left = 1, last = (double)d->logp[n - 1];
  for (int i = 0; i < n; i++) {
    double logp = (double)d->logp[i];
    left -= exp(logp);
    sort_in(d, score, i, logp > -INFINITY ? (logp + s->lean * (double)d->own[i]) / s->scale : -INFINITY);
  }
  /* Weights relative to the first candidate, whose weight is 1. */
  double first = score[0], others = 0, weighted = 0;
  for (int i = 1; i <= n; i++) {
    double x = i < n ? score[i] - first : score[n - 1] - first - log(10.0) / s->scale;
    double weight = exp(x);
    if (i == n) weight *= left > 0 && last > -INFINITY ? left / exp(last - log(10.0)) : 0; /* number of other ids */
    others += weight;
    if (weight > 0) weighted += weight * x;
  }
  if (!(others > 0)) { /* no other id is possible */
    for (int i = 0; i < n; i++) d->logp[i] = i ? -INFINITY : 0;
    d->confidence = 1, d->entropy = 0;
    return;
  }
  double second = n > 1 ? exp(score[1] - first) : 0;
  double odds = fmin(fmax(exp(s->shift - s->slope * log(others)), s->share * second / others), 1e12);
  double rest = log1p(odds), logp = -log1p(1 / odds); /* -log of what is left after the first, log of its own */
  double shared = rest - log(s->share);               /* -log of the probability of all others together */
  for (int i = 0; i < n; i++) d->logp[i] = (float)(i ? score[i] - first - log(others) - shared : logp);
  d->confidence = (float)exp(logp);
  double entropy = exp(-shared) * (shared + log(others) - weighted / others) - exp(logp) * logp;
  double nobody = exp(-rest) * (1 - s->share); /* counts as one more outcome */
  d->entropy = (float)(nobody > 0 ? entropy - nobody * log(nobody) : entropy);
}
