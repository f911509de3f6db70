/* Shifts: what is added to and taken from some ids' logits before the likeliest is taken or one is drawn. The caller
 * says for each row which ids and how (a penalty of what the text before the row holds, a bias, a ban), so a row's
 * result depends on nothing else. A row may also allow some ids only. An id that no list names and that is allowed
 * keeps its logit, to the bit. Log-probabilities that are asked for are of the logits before shifts. */
#ifndef DT_SHIFT_H
#define DT_SHIFT_H

#include "backend/draw.h"

/* In this order: bias is added; then, if the logit is negative, it is multiplied by `repeat`, else divided; then
 * `minus` is subtracted. A bias of -INFINITY bans the id. */
typedef struct {
  int32_t id;
  float bias;
  float repeat; /* above 0; 1: none */
  float minus;
} dt_shift;

/* Those of a row: two lists of rising ids. What the second says of an id counts, not what the first does. Many rows
 * share the first, that of a text; the second is that of a path of guesses after it. */
typedef struct {
  const dt_shift *text, *path;
  int n_text, n_path;
  const uint64_t *allowed; /* bit id % 64 of allowed[id / 64]: whether the id may come; NULL: all may */
} dt_row_shifts;

DRAW_FUNCTION bool shift_allows(const dt_row_shifts *s, int32_t id) {
  return !s->allowed || (s->allowed[id / 64] >> (id % 64) & 1);
}

/* The first place in a list of rising ids whose id is at least this; n: there is none. */
DRAW_FUNCTION int shift_place(const dt_shift *list, int n, int32_t id) {
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

DRAW_FUNCTION float shift_logit(const dt_shift *s, float logit) {
  float x = logit + s->bias;
  return (x < 0.0f ? x * s->repeat : x / s->repeat) - s->minus;
}

#endif
