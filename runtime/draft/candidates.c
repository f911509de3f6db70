/* See candidates.h. */
#include "draft/candidates.h"

#include <math.h>

void candidates_read(const draft_results *r, int i, candidates *to) {
  const size_t at = (size_t)i * (size_t)r->k;
  to->entropy = r->entropy[i];
  for (to->n = 0; to->n < r->k && r->top_id[at + to->n] >= 0 && r->top_logp[at + to->n] > -INFINITY; to->n++) {
    to->id[to->n] = r->top_id[at + to->n];
    to->logp[to->n] = r->top_logp[at + to->n];
    to->own[to->n] = r->top_own[at + to->n];
  }
}

typedef struct {
  double rest;    /* the share of all other ids */
  double log_sum; /* of the changed weights of all ids */
} norm;

/* Adds sums[i] * scale to each log-probability, and finds by what all must be divided then. */
static norm change(const float *logp, const float *sums, float scale, int n, bool alone, double *changed) {
  double most = -INFINITY, sum = 0, others = 1;
  for (int i = 0; i < n; i++) {
    changed[i] = (double)logp[i] + (double)(sums[i] * scale);
    others -= exp((double)logp[i]);
    if (changed[i] > most) most = changed[i];
  }
  others = alone || others < 0 ? 0 : others;
  if (others > 0 && log(others) > most) most = log(others);
  for (int i = 0; i < n; i++) sum += exp(changed[i] - most);
  if (others > 0) sum += exp(log(others) - most);
  return (norm){others, most + log(sum)};
}

/* The entropy of the others' part, whose share has changed from `rest` by the common divisor. */
static double entropy_of_rest(const candidates *c, int n, norm by) {
  double listed = 0;
  for (int i = 0; i < n; i++) listed -= exp((double)c->logp[i]) * (double)c->logp[i];
  const double there = (double)c->entropy - listed, divisor = exp(by.log_sum);
  return by.rest > 0 && there > 0 ? there / divisor + by.rest / divisor * by.log_sum : 0;
}

/* Whether candidate a is better than b. */
static bool is_better(const candidates *c, const double *logp, int a, int b) {
  return logp[a] > logp[b] || (logp[a] == logp[b] && c->id[a] < c->id[b]);
}

void candidates_follow(const candidates *c, const successors *s, const float *gate, const draft_text *text, int node,
                       int32_t token, float temperature, float *room, dt_tree_draft *to) {
  const int n = s->listed && s->listed < c->n ? s->listed : c->n;
  float sums[DT_LISTED];
  double logp[DT_LISTED], own[DT_LISTED];
  int order[DT_LISTED], kept = 0;
  *to = (dt_tree_draft){.count = 0};
  if (!n) return;
  successors_add(s, token, gate, c->id, n, room, sums);
  const norm by = change(c->logp, sums, temperature > 0 ? 1 / temperature : 1, n, s->listed, logp),
             own_by = change(c->own, sums, 1, n, s->listed, own);
  if (!isfinite(by.log_sum) || !isfinite(own_by.log_sum)) return; /* a number of the head is not finite */
  double entropy = entropy_of_rest(c, n, by);
  for (int i = 0; i < n; i++) {
    int at = i;
    for (; at > 0 && is_better(c, logp, i, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = i;
    const double p = exp(logp[i] - by.log_sum);
    if (p > 0) entropy -= p * (logp[i] - by.log_sum);
  }
  for (int i = 0; i < n && kept < DT_CANDIDATES; i++) {
    const int32_t id = c->id[order[i]];
    if (text->adjustments && node && !adjustments_allow(text->adjustments, text->tree, node, id)) continue;
    to->token[kept] = id;
    to->logp[kept] = (float)(logp[order[i]] - by.log_sum);
    to->own[kept++] = (float)(own[order[i]] - own_by.log_sum);
  }
  to->count = kept;
  to->confidence = (float)exp(logp[order[0]] - by.log_sum);
  to->entropy = (float)entropy;
}
