/* The rows that a drafter's own cache has for the committed text: what draft models and heads with keys of their own
 * have in common. Row i of the text is in slot i. A head's text is shifted by one: its row i goes with the target's
 * feature of row i and token i + 1, so the text that it sees begins with the second token. The functions named as calls
 * of draft_ops are these calls; their drafter begins with a text_rows. */
#ifndef DT_DRAFT_TEXT_ROWS_H
#define DT_DRAFT_TEXT_ROWS_H

#include "backend/kv.h"
#include "backend/pass.h"
#include "draft/draft.h"

typedef struct {
  kv_slots kv;
  int prompt; /* rows 0..prompt-1 belong to the prompt */
} text_of;

typedef struct {
  drafter base;
  const dt_pair *pair;
  const pair_draft *draft; /* the pair's draft */
  dt_cache *cache;
  int sequences, context;
  int vocab;                   /* ids below it are in both models */
  int lag;                     /* tokens at the text's beginning that the draft does not see: 1 for a head */
  const dt_cache *features;    /* the target's cache, which a head reads; NULL: a model */
  const dt_sampling *sampling; /* [sequences] */
  text_of *seq;                /* [sequences] */
  pass rows;
} text_rows;

/* Fills everything except base.ops, cache and rows. */
dt_status text_rows_open(text_rows *t, const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                         const dt_cache *target, dt_error *err);
/* Creates the cache, with room for a tree of DT_TREE_DRAFTS nodes after the text, and gives the rows their window. */
dt_status text_rows_open_cache(text_rows *t, dt_error *err);
void text_rows_close(text_rows *t);
int text_rows_slots(const pair_draft *draft, int context); /* the slots of a sequence in that cache */

void text_rows_start(drafter *, int seq, int n, int same);
dt_status text_rows_prompt(drafter *, int seq, const draft_text *text, int most, int *left, dt_error *err);
int text_rows_rows(const drafter *, int seq, int n, int *there);
dt_status text_rows_blank(drafter *, int seq, int n, dt_error *err);
dt_status text_rows_save(const drafter *, int seq, int n, draft_saved **out, dt_error *err);
dt_status text_rows_restore(drafter *, int seq, const draft_saved *saved, int n, dt_error *err);
void text_rows_forget(draft_saved *saved);

int text_rows_seen(const text_rows *t, int n); /* the length of a text of n tokens as the draft sees it */
draft_text text_rows_view(const text_rows *t, draft_text text); /* the same text as the draft sees it */
/* Returns the token that the draft embeds in place of this one: another one if the token is past its vocabulary (the
 * target's padding), since a draft only guesses. */
int32_t text_rows_token(const text_rows *t, int32_t token);
/* Adds rows first..last-1 of a text, as the draft sees it, to t->rows. */
void text_rows_add(text_rows *t, int seq, const int32_t *tokens, int first, int last);
/* Adds the missing rows below `last` of a text, as the draft sees it, to t->rows, and counts them as computed; if they
 * do not fit, those before are run first. After a failure, the text's rows must be computed again. */
dt_status text_rows_collect(text_rows *t, int seq, const draft_text *text, int last, dt_error *err);
/* Runs the collected rows, if there are any. */
dt_status text_rows_run(text_rows *t, dt_error *err);

#endif
