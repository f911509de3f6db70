/* Shared by session.c (life of a sequence) and primitives.c (its iterations). A sequence's state is its tree's phase:
 * FROZEN is idle, OPEN and SEALED are drafting, VERIFIED is verified. */
#ifndef DT_SESSION_IMPL_H
#define DT_SESSION_IMPL_H

#include "backend/kv.h"
#include "backend/pass.h"
#include "draft/draft.h"
#include "session/logprobs.h"
#include "session/shifts.h"
#include "text/text.h"

/* A verify pass has room for the rows of this many sequences with the largest trees; more of them take several. */
#define PASS_SEQUENCES 8

/* Likeliest tokens that are kept of a verified row, for policies or for log-probabilities. */
#define ROW_TOP DT_TARGET_CANDIDATES
_Static_assert(DT_LOGPROBS <= ROW_TOP, "both get theirs from the same list");

typedef struct {
  bool started, fresh;        /* fresh: nothing ran since the start */
  bool named;                 /* in the call that is being checked */
  dt_finish finish, at_limit; /* at_limit: why the text ends when it reaches `limit` */
  int32_t *tokens;            /* [context] */
  int length, prompt, limit;
  bool ignore_eos;
  dt_tree *tree;
  kv_slots target;
  int32_t *slot;                /* [1 + DT_TREE_ENTRIES] the row of each kept node */
  int32_t path[DT_TREE_VERIFY]; /* accepted nodes */
  int accepted;
  int32_t bonus;
  int candidates;        /* asked for of every verified row */
  int32_t *candidate;    /* [1 + DT_TREE_VERIFY][ROW_TOP], by verified row; NULL: never asked for */
  float *candidate_logp; /* the same */
  float *choice_logp;    /* [1 + DT_TREE_VERIFY] of the target's token after each row */
  logprobs logs;
  bool shifted;
  shifts shifts; /* if so */
  text_stream text;
  size_t *text_end; /* [context] the text's length after each generated token */
  dt_stats stats;
  double start_ms;
  double target_prompt_ms; /* of the prompt pass, what the target took */
} sequence;

struct dt_session {
  dt_pair *pair;
  dt_cache *target;
  drafter *draft; /* NULL when not used */
  drafter *held;  /* draft, or that of the session that had this memory before */
  int sequences, context;
  sequence *seq;                          /* [sequences] */
  draft_text *text;                       /* [sequences] what the drafter sees of them */
  dt_sampling *sampling, *draft_sampling; /* [sequences] how the target's tokens are drawn, and the draft's ranked */
  pass rows;                              /* the target's */
  int32_t *wanted;                        /* [rows.capacity] */
  int32_t *choice;                        /* [sequences * (1 + DT_TREE_VERIFY)] the target's tokens */
  int32_t *candidate;                     /* [rows.capacity][ROW_TOP] of a pass; NULL: never asked for */
  float *candidate_logp;                  /* the same */
  float *choice_logp;                     /* [rows.capacity] */
  dt_row_shifts *shifts;                  /* [rows.capacity] of a pass; NULL: never asked for */
  shifts_paths paths;                     /* of its rows */
  int32_t from[DT_TREE_VERIFY + 1], to[DT_TREE_VERIFY + 1], keep[DT_TREE_VERIFY + 1];
};

struct dt_prefix {
  dt_pair *pair;
  int32_t *tokens;
  int n;
  dt_window window;
  dt_snapshot *target;        /* NULL: no rows */
  draft_saved *draft;         /* NULL: it was made without a drafter */
  const draft_ops *draft_ops; /* whose that is */
  double target_ms, draft_ms; /* what each one's prompt pass took */
};

/* Fails unless seq is a started sequence. */
dt_status session_check(const dt_session *s, int seq, dt_error *err);

/* The sequence as its drafter sees it. */
draft_text session_text(sequence *q);

/* An empty tree over the last committed token. */
void session_begin_tree(dt_session *s, int seq);

#endif
