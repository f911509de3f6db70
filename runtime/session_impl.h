/* What session.c (life of a sequence) and primitives.c (its iterations) share. A sequence's state is its tree's phase:
 * FROZEN is idle, OPEN and SEALED are drafting, VERIFIED is verified. */
#ifndef DT_SESSION_IMPL_H
#define DT_SESSION_IMPL_H

#include "kv.h"
#include "pair.h"
#include "pass.h"
#include "text.h"

/* Committed tokens that may ride along with a draft step; more of them get a pass of their own first, so that the rows of
 * a draft pass, whose paths can be long, stay few. */
#define RIDE_ALONG 64

typedef struct {
  bool started, fresh;        /* fresh: nothing ran since the prompt pass */
  dt_finish finish, at_limit; /* at_limit: why the text ends when it reaches `limit` */
  int32_t *tokens;            /* [context] */
  int length, prompt, limit;
  bool ignore_eos;
  dt_tree *tree;
  kv_slots target, draft;
  int32_t *target_slot, *draft_slot; /* [1 + DT_TREE_ENTRIES] of each node; -1: no row */
  int32_t path[DT_TREE_VERIFY];      /* accepted nodes */
  int accepted;
  int32_t bonus;
  text_stream text;
  size_t *text_end; /* [context] the text's length after each generated token */
  dt_stats stats;
  double start_ms;
  double draft_prompt_ms; /* of the prompt pass, what the draft model took */
} sequence;

struct dt_session {
  dt_pair *pair;
  dt_cache *target, *draft; /* draft: NULL when not used */
  dt_cache *draft_cache;    /* draft, or what a session with a draft was opened with before */
  int sequences, context, draft_context, shared_vocab;
  sequence *seq;                          /* [sequences] */
  dt_sampling *sampling, *draft_sampling; /* [sequences] how the target's tokens are drawn, and the draft's ranked */
  pass rows;
  struct {
    int32_t seq, node; /* whose row; node -1: a committed token that rides along */
  } * owner;           /* [rows.capacity] */
  int32_t *wanted;     /* [rows.capacity] */
  int32_t *choice;     /* [sequences * (1 + DT_TREE_VERIFY)] the target's tokens */
  int32_t *top_id;     /* [most drafts of a pass][DT_CANDIDATES] */
  float *top_logp, *confidence, *entropy;
  int32_t from[DT_TREE_VERIFY + 1], to[DT_TREE_VERIFY + 1], keep[DT_TREE_VERIFY + 1];
};

struct dt_prefix {
  dt_pair *pair;
  int32_t *tokens;
  int n, draft_rows;
  dt_snapshot *target, *draft; /* NULL: no rows */
  double target_ms, draft_ms;  /* what each model's prompt pass took */
};

/* Fails unless seq is a started sequence. */
dt_status session_check(const dt_session *s, int seq, dt_error *err);

/* An empty tree over the last committed token. */
void session_begin_tree(dt_session *s, sequence *q);

#endif
