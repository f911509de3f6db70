/* The results of a draft pass, on their way into a tree. */
#ifndef DT_DRAFT_RESULTS_H
#define DT_DRAFT_RESULTS_H

#include "backend/backend.h"
#include "tree/tree.h"

typedef struct {
  int32_t *top_id; /* [most][DT_CANDIDATES] */
  float *top_logp, *top_own, *confidence, *entropy;
} draft_results;

dt_status draft_results_open(draft_results *r, int most, dt_error *err);
void draft_results_close(draft_results *r);

/* The request for candidates among ids below `vocab`; the caller sets the number of rows. */
dt_out draft_results_out(draft_results *r, const int32_t *rows, const dt_sampling *sampling, int vocab);

/* Result i of that pass, as it is. */
void draft_results_read(const draft_results *r, int i, dt_tree_draft *to);

#endif
