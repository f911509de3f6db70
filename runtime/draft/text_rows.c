/* See text_rows.h. */
#include "draft/text_rows.h"

#include "backend/chunks.h"
#include "pair/account.h"
#include "system/min_max.h"

#include <stdlib.h>

struct draft_saved {
  const dt_pair *pair;
  dt_snapshot *rows;
  int n;
};

int32_t text_rows_token(const text_rows *t, int32_t token) { return token < t->vocab ? token : 0; }

int text_rows_seen(const text_rows *t, int n) { return dt_max(n - t->lag, 0); }

draft_text text_rows_view(const text_rows *t, draft_text text) {
  if (text.tokens) text.tokens += t->lag; /* a sequence that is not in the step may have no text */
  text.length = text_rows_seen(t, text.length);
  return text;
}

/* The number of rows that the visible n tokens of a prompt get: none if the draft could never draft after them. */
static int prompt_rows(const text_rows *t, int n) { return n <= t->context ? dt_max(n - 1, 0) : 0; }

void text_rows_add(text_rows *t, int seq, const int32_t *tokens, int first, int last) {
  for (int i = first; i < last; i++) *pass_row(&t->rows, seq, text_rows_token(t, tokens[i]), i, i, 1) = i;
}

/* Runs the collected rows, for the cache only. prompt: they are rows of a prompt. A draft's bits change no token, so
 * they may depend on where a piece of the prompt begins. */
static dt_status run_text(text_rows *t, bool prompt, dt_error *err) {
  t->rows.features = t->features;
  dt_rows rows = pass_rows(&t->rows);
  rows.prompt = prompt;
  return rows.n ? t->pair->ops->forward(t->draft->weights, t->cache, &rows, NULL, err) : DT_OK;
}

/* Sets how many rows of the cache a sequence reuses: at most `rows`. */
static void keep_rows(text_rows *t, int seq, int rows) {
  t->seq[seq].kv.rows = t->pair->ops->keep ? t->pair->ops->keep(t->cache, seq, rows) : rows;
}

void text_rows_start(drafter *base, int seq, int n, int same) {
  text_rows *t = (text_rows *)base;
  text_of *q = &t->seq[seq];
  q->prompt = prompt_rows(t, text_rows_seen(t, n));
  keep_rows(t, seq, dt_min(dt_min(text_rows_seen(t, same), q->kv.rows), q->prompt));
}

dt_status text_rows_prompt(drafter *base, int seq, const draft_text *text, int most, int *left, dt_error *err) {
  text_rows *t = (text_rows *)base;
  text_of *q = &t->seq[seq];
  const int chunk = t->pair->ops->chunk, missing = dt_max(q->prompt - q->kv.rows, 0);
  const bool in_chunks = chunk && q->kv.rows % chunk == 0;
  const int wants = in_chunks ? chunks_rows(chunk, q->prompt + 1) : 0;
  int n = chunks_piece(chunk, q->kv.rows, missing, most ? wants : 0, most);
  double start = dt_clock_ms();
  pass_begin(&t->rows, 1);
  text_rows_add(t, seq, text->tokens + t->lag, q->kv.rows, q->kv.rows + n);
  dt_status status = n ? run_text(t, in_chunks, err) : DT_OK;
  if (status) return status;
  q->kv.rows += n;
  *left = dt_max(q->prompt - q->kv.rows, 0);
  if (n) text->stats->prompt_ms += dt_clock_ms() - start;
  return DT_OK;
}

int text_rows_rows(const drafter *base, int seq, int n, int *there) {
  const text_rows *t = (const text_rows *)base;
  int all = text_rows_seen(t, n);
  *there = dt_min(t->seq[seq].kv.rows, all);
  return all;
}

dt_status text_rows_blank(drafter *base, int seq, int n, dt_error *err) {
  text_rows *t = (text_rows *)base;
  n = prompt_rows(t, text_rows_seen(t, n));
  t->seq[seq].prompt = 0;
  keep_rows(t, seq, 0);
  t->rows.features = t->features;
  dt_status status = n ? pass_blank(&t->rows, t->pair->ops, t->draft->weights, t->cache, seq, n, err) : DT_OK;
  if (!status) t->seq[seq].kv.rows = n;
  return status;
}

dt_status text_rows_save(const drafter *base, int seq, int n, draft_saved **out, dt_error *err) {
  const text_rows *t = (const text_rows *)base;
  draft_saved *saved = calloc(1, sizeof *saved);
  if (!saved) return dt_fail_memory(err, "a prefix", sizeof *saved);
  *saved = (draft_saved){.pair = t->pair, .n = dt_min(t->seq[seq].kv.rows, prompt_rows(t, text_rows_seen(t, n)))};
  dt_status status = saved->n ? t->pair->ops->snapshot(t->cache, seq, saved->n, &saved->rows, err) : DT_OK;
  if (status)
    free(saved);
  else
    *out = saved;
  return status;
}

dt_status text_rows_restore(drafter *base, int seq, const draft_saved *saved, int n, dt_error *err) {
  text_rows *t = (text_rows *)base;
  text_rows_start(base, seq, n, 0); /* rows that are not restored are computed at the first step */
  if (!saved->rows || !t->seq[seq].prompt) return DT_OK;
  dt_status status = t->pair->ops->restore(t->cache, seq, saved->rows, err);
  if (!status) keep_rows(t, seq, dt_min(saved->n, t->seq[seq].prompt));
  return status;
}

void text_rows_forget(draft_saved *saved) {
  if (saved && saved->rows) saved->pair->ops->free_snapshot(saved->rows);
  free(saved);
}

dt_status text_rows_collect(text_rows *t, int seq, const draft_text *text, int last, dt_error *err) {
  kv_slots *kv = &t->seq[seq].kv;
  dt_status status = DT_OK;
  if (!pass_fits(&t->rows, last - kv->rows)) {
    status = text_rows_run(t, err);
    pass_begin(&t->rows, 1);
  }
  text_rows_add(t, seq, text->tokens, kv->rows, last);
  kv->rows = dt_max(kv->rows, last);
  return status;
}

dt_status text_rows_run(text_rows *t, dt_error *err) { return run_text(t, false, err); }

static int context_of(const pair_draft *draft, int context) { return dt_min(context, draft->info.context); }

int text_rows_slots(const pair_draft *draft, int context) { return draft_slots(context_of(draft, context)); }

dt_status text_rows_open(text_rows *t, const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                         const dt_cache *target, dt_error *err) {
  const pair_draft *draft = &pair->draft;
  *t = (text_rows){.base = t->base,
                   .pair = pair,
                   .draft = draft,
                   .sequences = sequences,
                   .context = context_of(draft, context),
                   .vocab = dt_min(pair->target_info.vocab, draft->info.vocab),
                   .lag = *draft->head ? 1 : 0,
                   .features = *draft->head ? target : NULL,
                   .sampling = sampling};
  t->seq = calloc((size_t)sequences, sizeof *t->seq);
  if (!t->seq) return dt_fail_memory(err, "a draft's sequences", (size_t)sequences * sizeof *t->seq);
  for (int i = 0; i < sequences; i++) kv_init(&t->seq[i].kv, text_rows_slots(draft, context));
  return DT_OK;
}

dt_status text_rows_open_cache(text_rows *t, dt_error *err) {
  t->rows.window = t->draft->window;
  return t->pair->ops->create_cache(t->draft->weights, t->sequences, text_rows_slots(t->draft, t->context), &t->cache,
                                    err);
}

void text_rows_close(text_rows *t) {
  if (t->cache) t->pair->ops->free_cache(t->cache);
  pass_close(&t->rows);
  free(t->seq);
}
