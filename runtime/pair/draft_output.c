#include "pair/draft_output.h"
#include "system/min_max.h"

#include <stdlib.h>
#include <string.h>

static dt_status mark_text(const dt_pair *p, const dt_text *text, bool *marked, int vocab, dt_error *err) {
  int32_t *ids = NULL;
  int n = 0;
  dt_status s = tok_encode(p->tokenizer, text->text, text->len, true, &ids, &n, err);
  for (int i = 0; !s && i < n; i++)
    if (ids[i] < vocab) marked[ids[i]] = true;
  if (!s) free(ids);
  return s;
}

enum { PART = 8, LEAST = 8192 };

int draft_output_lowest(const dt_draft_vocab *v, int vocab) {
  return v->lowest >= 0 ? v->lowest : dt_min(vocab, dt_max(vocab / PART, LEAST));
}

static dt_status check_range(const dt_draft_vocab *v, int vocab, dt_error *err) {
  if (v->lowest > vocab) return dt_fail(err, DT_EINPUT, "draft_vocab: %d is out of range: 1 to %d", v->lowest, vocab);
  for (int i = 0; i < v->n_ids; i++)
    if (v->ids[i] < 0 || v->ids[i] >= vocab)
      return dt_fail(err, DT_EINPUT, "draft_vocab: id %d is out of range: 0 to %d", v->ids[i], vocab - 1);
  return DT_OK;
}

static dt_status mark(const dt_pair *p, const dt_draft_vocab *v, bool *marked, int vocab, dt_error *err) {
  dt_status s = DT_OK;
  const int lowest = draft_output_lowest(v, vocab);
  for (int id = 0; id < lowest; id++) marked[id] = true;
  for (int i = 0; i < v->n_ids; i++) marked[v->ids[i]] = true;
  for (int i = 0; i < p->n_eos; i++)
    if (p->eos[i] < vocab) marked[p->eos[i]] = true;
  if (v->text) s = mark_text(p, &(dt_text){v->text, strlen(v->text)}, marked, vocab, err);
  for (int i = 0; !s && i < v->n_texts; i++) s = mark_text(p, &v->texts[i], marked, vocab, err);
  return s;
}

/* Reduces the draft's ids to the set, which has at most those that both models have. */
static dt_status reduce(const dt_pair *p, const dt_draft_vocab *v, dt_model_desc *d, draft_output *out, dt_error *err) {
  const int vocab = d->shape.vocab < p->target_info.vocab ? d->shape.vocab : p->target_info.vocab;
  const int had = d->ids ? d->n_ids : vocab;
  dt_status s = check_range(v, vocab, err);
  if (s) return s;
  bool *marked = calloc((size_t)vocab, sizeof *marked);
  out->ids = malloc((size_t)had * sizeof *out->ids);
  out->rows = malloc((size_t)had * sizeof *out->rows);
  s = marked && out->ids && out->rows ? mark(p, v, marked, vocab, err)
                                      : dt_fail_memory(err, "the draft's ids", (size_t)vocab * 9);
  int n = 0;
  for (int i = 0; !s && i < had; i++) {
    const int32_t id = d->ids ? d->ids[i] : i;
    if (id < vocab && marked[id]) out->ids[n] = id, out->rows[n++] = d->id_rows ? d->id_rows[i] : id;
  }
  free(marked);
  if (!s && !n) s = dt_fail(err, DT_EINPUT, "draft_vocab: none of its ids are among the %d of the draft head", had);
  d->ids = out->ids, d->id_rows = out->rows, d->n_ids = n;
  return s;
}

dt_status draft_output_open(const dt_pair *p, const dt_draft_vocab *given, bool apart, dt_model_desc *d,
                            draft_output *out, dt_error *err) {
  dt_status s = DT_OK;
  if (!d->unembed.source && (given || apart)) {
    if ((s = model_open(p->target_path, &out->target, err))) return s;
    d->unembed = model_desc(out->target)->unembed;
  }
  return given ? reduce(p, given, d, out, err) : DT_OK;
}

void draft_output_close(draft_output *out) {
  model_close(out->target);
  free(out->ids), free(out->rows);
  *out = (draft_output){0};
}
