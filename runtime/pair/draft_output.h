/* The output of a draft: the ids that it may guess, and the rows of an output matrix that give their logits. */
#ifndef DT_DRAFT_OUTPUT_H
#define DT_DRAFT_OUTPUT_H

#include "pair/pair.h"

typedef struct {
  model *target; /* the target's files, if the output is the target's; NULL: the draft has its own */
  int32_t *ids, *rows;
} draft_output;

/* Prepares the description of a draft for its upload. If `given` is set, its ids are reduced to those; if they are
 * reduced, or if `apart` says so, a draft without an output of its own gets the target's. The description is valid
 * until draft_output_close, which also follows a failure. DT_EINPUT: the set has ids that the draft cannot have. */
dt_status draft_output_open(const dt_pair *p, const dt_draft_vocab *given, bool apart, dt_model_desc *d,
                            draft_output *out, dt_error *err);
void draft_output_close(draft_output *out);

/* The number of lowest ids that a set has, where the draft has `vocab` ids. */
int draft_output_lowest(const dt_draft_vocab *v, int vocab);

#endif
