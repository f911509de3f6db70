/* The structures of sessions, sequences and prefixes, shared by the files of this folder: session.c starts and ends
 * sequences, primitives.c runs their iterations, the others answer queries. The phase of a sequence's tree is the state
 * of its iteration: FROZEN is idle, OPEN and SEALED are drafting, VERIFIED is verified. */
#ifndef DT_SESSION_IMPL_H
#define DT_SESSION_IMPL_H

#include "backend/kv.h"
#include "backend/pass.h"
#include "draft/adjustments.h"
#include "draft/draft.h"
#include "session/grammar_cache.h"
#include "session/logprobs.h"
#include "text/text.h"

/* A verify pass has room for this many sequences with the largest trees; more sequences take several passes. */
#define PASS_SEQUENCES 8

/* The number of likeliest tokens that are stored for a verified row, for policies or for log-probabilities. */
#define ROW_TOP DT_TARGET_CANDIDATES
_Static_assert(DT_LOGPROBS <= ROW_TOP, "both get theirs from the same list");

typedef struct {
  bool started, fresh;        /* fresh: nothing ran since the start */
  bool begun;                 /* some rows of its prompt are computed, and others are missing */
  bool blank;                 /* its first rows were not computed from its tokens (dt_seq_start_blank) */
  bool drafts;                /* the missing rows include those of the draft */
  bool named;                 /* the list that is being checked has named it */
  dt_finish finish, at_limit; /* at_limit: why the text ends when it reaches `limit` */
  int32_t *tokens;            /* [context] */
  int length, prompt, limit;
  int chunked; /* its first rows, which are computed in chunks (dt_backend_ops.chunk), or will be */
  bool ignore_eos;
  int32_t end; /* a token that ends this text, in addition to those of the model; -1: none */
  dt_tree *tree;
  kv_slots target;
  int32_t *slot;                /* [1 + DT_TREE_ENTRIES] the row of each kept node */
  int32_t path[DT_TREE_VERIFY]; /* accepted nodes */
  int accepted;
  int32_t bonus;
  int candidates;        /* wanted for every verified row */
  int32_t *candidate;    /* [1 + DT_TREE_VERIFY][ROW_TOP], by verified row; NULL: never wanted */
  float *candidate_logp; /* the same */
  float *choice_logp;    /* [1 + DT_TREE_VERIFY] log-probability of the target's token after each row */
  int32_t *experts;      /* [1 + DT_TREE_VERIFY] rows' experts: see row_experts.h; NULL: the target has none */
  logprobs logs;
  bool adjusted;
  adjustments adjustments; /* only if `adjusted` */
  text_stream text;
  size_t *text_end; /* [context] the text's length after each generated token */
  dt_stats stats;
  double start_ms;
  double target_prompt_ms; /* the target's part of the prompt pass */
  double drafts_prompt_ms; /* the draft's part, from a prefix; the first draft step adds it to prompt_ms and sets 0 */
} sequence;

struct dt_session {
  dt_pair *pair;
  dt_cache *target;
  bool drafts;    /* the drafter is in use */
  drafter *draft; /* NULL: neither this session nor the previous one with this memory drafts */
  int sequences, context;
  sequence *seq;    /* [sequences] */
  draft_text *text; /* [sequences] each sequence as its drafter sees it */
  /* [sequences] How the target's tokens are sampled, and how the draft's candidates are ranked. */
  dt_sampling *sampling, *draft_sampling;
  pass rows;                   /* the target's */
  int32_t *wanted;             /* [rows.capacity] */
  int32_t *choice;             /* [sequences * (1 + DT_TREE_VERIFY)] the target's tokens */
  int32_t *candidate;          /* [rows.capacity][ROW_TOP] of a pass; NULL: never wanted */
  float *candidate_logp;       /* the same */
  float *choice_logp;          /* [rows.capacity] */
  int32_t *experts;            /* [rows.capacity] rows' experts; NULL: the target has none */
  int experts_read;            /* by the last verify pass */
  grammar_cache grammars;      /* of the last texts that had one */
  row_adjustments adjustments; /* of its rows */
  int32_t from[DT_TREE_VERIFY + 1], to[DT_TREE_VERIFY + 1], keep[DT_TREE_VERIFY + 1];
};

struct dt_prefix {
  dt_pair *pair;
  int32_t *tokens;
  int n, rows, chunked; /* chunked: how many of the rows were computed in chunks */
  size_t bytes;         /* of the rows */
  dt_window window;
  dt_snapshot *target; /* NULL: no rows */
  draft_saved *draft;
  const draft_ops *draft_ops; /* of the drafter that made these rows; NULL: the prefix was made without it */
  double target_ms, draft_ms; /* time of the prompt pass of the target, and of the draft */
};

/* Fails unless seq is a started sequence. */
dt_status session_check(const dt_session *s, int seq, dt_error *err);
/* Fails with DT_ESTATE if there is no such node or it is not verified. `call` is the name of the caller, for the
 * message. */
dt_status session_check_verified(const sequence *q, int node, const char *call, dt_error *err);

/* The sequence as its drafter sees it. */
draft_text session_text(sequence *q);

/* Begins an empty tree over the last committed token. */
void session_begin_tree(dt_session *s, int seq);

#endif
