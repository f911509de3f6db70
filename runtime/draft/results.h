/* Receives the results of a draft pass and copies them to a tree. */
#ifndef DT_DRAFT_RESULTS_H
#define DT_DRAFT_RESULTS_H

#include "backend/backend.h"
#include "draft/adjustments.h"
#include "tree/tree.h"

typedef struct {
  int k;
  int32_t *top_id; /* [most][k] */
  float *top_logp, *top_own, *confidence, *entropy;
  row_adjustments adjustments;
} draft_results;

/* Allocates room for passes of up to `most` rows with k candidates each (at least DT_CANDIDATES), and with up to
 * `guesses` guesses on all their paths together. */
dt_status draft_results_open(draft_results *r, int most, int k, size_t guesses, dt_error *err);
void draft_results_close(draft_results *r);

/* Returns a request for candidates among ids below `vocab`, for no rows yet. */
dt_out draft_results_out(draft_results *r, const int32_t *rows, const dt_sampling *sampling, int vocab);

/* Adds a row to the request: the row of a node of a text's tree. */
void draft_results_want(draft_results *r, dt_out *out, const adjustments *s, const dt_tree *t, int node);

/* Copies the first candidates of result i of the pass, unchanged. */
void draft_results_read(const draft_results *r, int i, dt_tree_draft *to);

#endif
