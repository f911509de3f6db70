/* The results of a draft pass, on their way into a tree. */
#ifndef DT_DRAFT_RESULTS_H
#define DT_DRAFT_RESULTS_H

#include "backend/backend.h"
#include "draft/adjustments.h"
#include "tree/tree.h"

typedef struct {
  int32_t *top_id; /* [most][DT_CANDIDATES] */
  float *top_logp, *top_own, *confidence, *entropy;
  row_adjustments adjustments;
} draft_results;

/* Of at most so many rows in a pass, with so many guesses on all their paths. */
dt_status draft_results_open(draft_results *r, int most, size_t guesses, dt_error *err);
void draft_results_close(draft_results *r);

/* The request for candidates among ids below `vocab`, of no rows yet. */
dt_out draft_results_out(draft_results *r, const int32_t *rows, const dt_sampling *sampling, int vocab);

/* One more row is wanted, that of a node of a text's tree. */
void draft_results_want(draft_results *r, dt_out *out, const adjustments *s, const dt_tree *t, int node);

/* Result i of that pass, as it is. */
void draft_results_read(const draft_results *r, int i, dt_tree_draft *to);

#endif
