/* The interface of a drafter: a draft model, a head, or anything else that proposes tokens to a session. A drafter has
 * its own cache rows for every sequence and writes draft results to the sequence's tree; it does not decide which
 * tokens are committed. If its cache lacks rows of the text, the next step computes them. A head also reads features of
 * the target, which are stored in the target's cache (upload_head and dt_rows.features in backend/backend.h).
 *
 * All functions are required; rowless.h has those of a drafter without rows. For each sequence they are called in this
 * order; a rollback returns to begin without keep, start may follow start or restore at once, and save and rows may
 * come at any time: (start | restore | blank) -> prompt* -> (begin -> step* -> keep)* A new kind of drafter is opened
 * in open_drafters (session/session.c). The recipe "A draft head" in runtime/README.md lists all places that a new kind
 * of head concerns. */
#ifndef DT_DRAFT_H
#define DT_DRAFT_H

#include "draft/adjustments.h"
#include "pair/pair.h"

/* A sequence as its drafter sees it. Everything in it belongs to the session. */
typedef struct {
  const int32_t *tokens; /* [length] committed tokens; the last one is the tree's root */
  int length;
  dt_tree *tree;
  const adjustments *adjustments; /* of the target's logits, also applied before guesses are ranked; NULL: none */
  /* The drafter counts draft_passes, draft_rows and draft_ms. Time of prompt rows, also of those that a step computes
   * in a pass of their own, is added to prompt_ms instead. */
  dt_stats *stats;
} draft_text;

typedef struct drafter drafter;
typedef struct draft_saved draft_saved; /* a copy of a drafter's rows of a prompt */

typedef struct {
  void (*close)(drafter *);

  /* Begins a sequence over n prompt tokens. The first `same` of them equal the first ones of the sequence's previous
   * text: that of the last start, restore or blank, and the tokens committed since. A row stays valid only if all
   * tokens that it depends on are among them: rows 0..same-1 of a model, but rows 0..same-2 of a head whose row p reads
   * token p + 1. Computes nothing, since the sequence may never be drafted for. */
  void (*start)(drafter *, int seq, int n, int same);
  /* Computes at most `most` (0: none) of the missing prompt rows in a separate pass. *left is the number of rows that
   * are still missing; the first step computes all of them. */
  dt_status (*prompt)(drafter *, int seq, const draft_text *, int most, int *left, dt_error *);
  /* Returns how many rows the first n tokens of the sequence's text have when none is missing; callers count the tokens
   * before the root, whose own row belongs to the tree. *there is how many of these rows exist; the next step computes
   * the others. */
  int (*rows)(const drafter *, int seq, int n, int *there);
  /* Begins a sequence over n meaningless tokens for measurements, without a prompt pass. */
  dt_status (*blank)(drafter *, int seq, int n, dt_error *);
  /* save: copies those rows of the first n tokens of a sequence's text that exist. It may set the copy to NULL, which
   * is then passed to restore and forget like any other. restore: begins a sequence of the same pair whose text is
   * these n tokens, with the saved rows; the next step computes the others. */
  dt_status (*save)(const drafter *, int seq, int n, draft_saved **, dt_error *);
  dt_status (*restore)(drafter *, int seq, const draft_saved *, int n, dt_error *);
  void (*forget)(draft_saved *); /* NULL is allowed */

  /* An empty tree begins over `length` committed tokens. */
  void (*begin)(drafter *, int seq, int length);

  /* Runs dt_draft_step for existing nodes of open trees. It computes missing rows of the prompt, then of later tokens
   * and of ancestors, then those of the nodes, except nodes that already have a result. Each result goes
   * into dt_tree_new_draft (NULL: no room) and is then calibrated by dt_tree_calibrate_draft; a node beyond the context
   * gets dt_tree_no_draft (all three are in tree/tree.h). `texts` has an entry for each sequence, which is filled for
   * the sequences of the nodes. A pass that fails changes nothing, but earlier passes of the step remain valid. */
  dt_status (*step)(drafter *, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *);

  /* Keeps the rows of committed nodes: the first n nodes of `path`, which begins with a child of the root, are now the
   * tokens before..before+n-1 of the text (the root is before-1). One more token was committed after them: the new
   * root, which has no row. A row that is not kept is missing. After a failure the sequence must start again. */
  dt_status (*keep)(drafter *, int seq, int before, const int32_t *path, int n, dt_error *);
} draft_ops;

struct drafter {
  const draft_ops *ops;
};

/* Opens the pair's draft, a model or a head, as a drafter. sampling: [sequences] how candidates are ranked.
 * target: the target's cache, with the features that a head reads. Both belong to the session. */
dt_status draft_model_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err);
/* The same for a Medusa head, which has no rows in a cache. */
dt_status draft_medusa_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                            const dt_cache *target, drafter **out, dt_error *err);
/* The same for a cross-attention head, whose only rows are the features of a tree's nodes. */
dt_status draft_cross_attention_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                                     const dt_cache *target, drafter **out, dt_error *err);
/* The same for a block head, which has rows of the text and forgets those of its blocks. */
dt_status draft_block_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err);

#endif
