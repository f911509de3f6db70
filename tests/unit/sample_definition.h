/* The definition of sample.h in double precision. The samples of backends are compared with it. */
#ifndef SAMPLE_DEFINITION_H
#define SAMPLE_DEFINITION_H

#include "backend/sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { DEFINITION_IDS = 3000 };

static inline double definition_noise(uint64_t seed, int position, int id) {
  return -log(-log1p(-((double)sample_bits(seed, position, id) + 0.5) / 4294967296.0));
}

static const float *definition_logits;
static inline int definition_order(const void *a, const void *b) {
  int i = *(const int *)a, j = *(const int *)b;
  if (definition_logits[i] != definition_logits[j]) return definition_logits[i] > definition_logits[j] ? -1 : 1;
  return i - j;
}

/* Returns the token. *allowed: how many ids are allowed. */
static inline int definition_sampled(const dt_sampling *s, int position, const float *logits, int n, int *allowed) {
  static int order[DEFINITION_IDS];
  static double weight[DEFINITION_IDS];
  double sum = 0, ahead = 0, best = -INFINITY;
  int top_k = s->top_k > 0 && s->top_k < n ? s->top_k : n, choice = -1;
  for (int i = 0; i < n; i++) order[i] = i;
  definition_logits = logits;
  qsort(order, (size_t)n, sizeof *order, definition_order);
  for (int k = 0; k < top_k; k++)
    sum += weight[k] = exp(((double)logits[order[k]] - (double)logits[order[0]]) / (double)s->temp);
  for (*allowed = 0; *allowed < top_k; ahead += weight[(*allowed)++]) {
    int id = order[*allowed];
    bool in_top_p = s->top_p == 0 || s->top_p == 1 || ahead < (double)s->top_p * sum;
    if (*allowed > 0 && !(in_top_p && weight[*allowed] >= (double)s->min_p)) break;
    double score = (double)logits[id] / (double)s->temp + definition_noise(s->seed, position, id);
    if (score > best || (score == best && id < choice)) best = score, choice = id;
  }
  return choice;
}

#endif
