/* Results of draft passes: see results.h. */
#include "draft/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dt_status draft_results_open(draft_results *r, int most, int k, size_t guesses, dt_error *err) {
  const size_t n = (size_t)most, all = n * (size_t)k;
  *r = (draft_results){.k = k,
                       .top_id = malloc(all * sizeof *r->top_id),
                       .top_logp = malloc(all * sizeof *r->top_logp),
                       .top_own = malloc(all * sizeof *r->top_own),
                       .confidence = malloc(n * sizeof *r->confidence),
                       .entropy = malloc(n * sizeof *r->entropy)};
  return r->top_id && r->top_logp && r->top_own && r->confidence && r->entropy
             ? row_adjustments_open(&r->adjustments, most, guesses, err)
             : dt_fail_memory(err, "the results of a draft step", all * 12);
}

void draft_results_close(draft_results *r) {
  free(r->top_id), free(r->top_logp), free(r->top_own), free(r->confidence), free(r->entropy);
  row_adjustments_close(&r->adjustments);
}

dt_out draft_results_out(draft_results *r, const int32_t *rows, const dt_sampling *sampling, int vocab) {
  row_adjustments_begin(&r->adjustments);
  return (dt_out){.want = DT_WANT_TOPK,
                  .row = rows,
                  .sampling = sampling,
                  .k = r->k,
                  .vocab = vocab,
                  .top_id = r->top_id,
                  .top_logp = r->top_logp,
                  .top_own = r->top_own,
                  .confidence = r->confidence,
                  .entropy = r->entropy};
}

void draft_results_want(draft_results *r, dt_out *out, const adjustments *s, const dt_tree *t, int node) {
  row_adjustments_put(&r->adjustments, out->n++, s, t, node);
  if (s) out->adjustments = r->adjustments.row;
}

void draft_results_read(const draft_results *r, int i, dt_tree_draft *to) {
  const int32_t *id = r->top_id + (size_t)i * (size_t)r->k;
  const float *logp = r->top_logp + (size_t)i * (size_t)r->k;
  for (to->count = 0; to->count < DT_CANDIDATES && id[to->count] >= 0 && logp[to->count] > -INFINITY;) to->count++;
  memcpy(to->token, id, sizeof to->token);
  memcpy(to->logp, logp, sizeof to->logp);
  memcpy(to->own, r->top_own + (size_t)i * (size_t)r->k, sizeof to->own);
  to->confidence = r->confidence[i];
  to->entropy = r->entropy[i];
}
