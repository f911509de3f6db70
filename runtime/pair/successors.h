/* What a token adds to the logits of the tokens after it, in a block head that knows this (DSpark, DFlash2): see
 * dt_head_kind. It depends on the tree, so it is computed here and not by a backend. */
#ifndef DT_SUCCESSORS_H
#define DT_SUCCESSORS_H

#include "model/weights.h"

typedef struct {
  int factors, rank;     /* the head's R, and the same with zeros up to a multiple of the lanes of a sum */
  int listed;            /* as in dt_head_desc */
  bool gated;            /* the sums have a factor for each of the rank numbers */
  float *before, *after; /* [ids][rank], [rows][rank] */
  int32_t *row;          /* [ids] the row of `after` for an id that the head guesses; NULL: the id */
} successors;

/* Reads a head's matrices; *out becomes NULL if it has none. Fails as source_read does. */
dt_status successors_open(const dt_head_desc *head, successors **out, dt_error *err);
void successors_close(successors *s); /* NULL is allowed */

/* sums[i] = what `token` adds to the logit of id[i], for n ids that the head guesses. gate: [rank] what post computed
 * for the distance, and zeros; NULL: the head has no post. factors: room for [rank] numbers. */
void successors_add(const successors *s, int32_t token, const float *gate, const int32_t *id, int n, float *factors,
                    float *sums);

#endif
