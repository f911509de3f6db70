/* Logit adjustments: penalties, biases and bans of token ids, applied before the likeliest id is taken or one is
 * sampled. The caller lists for each row which ids are adjusted and how, so a row's result depends on nothing else. A
 * row can also allow only some ids. An allowed id that is in no list keeps its logit, to the bit. Log-probabilities in
 * results are those of the logits before adjustments. */
#ifndef DT_ADJUSTMENT_H
#define DT_ADJUSTMENT_H

#include "backend/sample.h"

/* The adjustment of one id, applied in this order: `bias` is added; then the logit is multiplied by `repeat` if it is
 * negative, and divided by it otherwise; then `minus` is subtracted. A bias of -INFINITY bans the id. */
typedef struct {
  int32_t id;
  float bias;
  float repeat; /* above 0; 1: none */
  float minus;
} dt_adjustment;

/* The adjustments of a row: two lists, each sorted by rising id. `text` belongs to a text, and many rows share it;
 * `path` belongs to a path of guesses after the text. If both name an id, `path` counts. */
typedef struct {
  const dt_adjustment *text, *path;
  int n_text, n_path;
  const uint64_t *allowed; /* bit id % 64 of allowed[id / 64] is set if the id is allowed; NULL: all are */
} dt_row_adjustments;

SAMPLE_FUNCTION bool adjustment_allows(const dt_row_adjustments *s, int32_t id) {
  return !s->allowed || (s->allowed[id / 64] >> (id % 64) & 1);
}

/* Returns the index of the first entry with at least this id in a list sorted by id, or n if there is none. */
SAMPLE_FUNCTION int adjustment_place(const dt_adjustment *list, int n, int32_t id) {
  int low = 0;
  while (low < n) {
    int middle = low + (n - low) / 2;
    if (list[middle].id < id)
      low = middle + 1;
    else
      n = middle;
  }
  return low;
}

SAMPLE_FUNCTION float adjust_logit(const dt_adjustment *s, float logit) {
  float x = logit + s->bias;
  return (x < 0.0f ? x * s->repeat : x / s->repeat) - s->minus;
}

#endif
