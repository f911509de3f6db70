/* See distances.h. */
#include "draft/distances.h"

void distances_forget(distances *d) {
  for (int i = 0; i < DT_DISTANCES; i++) d->known[i] = false;
}

void distances_want(draft_results *r, dt_out *out, const draft_text *text, int distance) {
  const int result = out->n;
  draft_results_want(r, out, text->adjustments, text->tree, 0);
  if (distance) r->adjustments.row[result].allowed = NULL;
}

static void leave_out_forbidden(const draft_text *text, int node, dt_tree_draft *of) {
  int n = 0;
  for (int i = 0; i < of->count; i++) {
    if (!adjustments_allow(text->adjustments, text->tree, node, of->token[i])) continue;
    of->token[n] = of->token[i], of->logp[n] = of->logp[i], of->own[n] = of->own[i];
    n++;
  }
  of->count = n;
}

dt_tree_draft *distances_begin(const distances *d, const draft_text *text, int node) {
  dt_tree *t = text->tree;
  const int distance = t->depth[node];
  if (dt_tree_draft_of(t, node)) return NULL;
  if (distance < DT_DISTANCES && d->known[distance]) return dt_tree_new_draft(t, node);
  dt_tree_no_draft(t, node);
  return NULL;
}

void distances_take(const distances *d, const draft_text *text, int node) {
  const int distance = text->tree->depth[node];
  dt_tree_draft *to = distances_begin(d, text, node);
  if (!to) return;
  *to = d->at[distance];
  if (text->adjustments && distance) leave_out_forbidden(text, node, to);
  dt_tree_calibrate_draft(text->tree, to);
}
