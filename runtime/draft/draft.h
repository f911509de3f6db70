/* The interface of a drafter: a draft model, a head, or anything else that proposes tokens to a session. A drafter
 * holds its own rows for every sequence and writes guesses into the sequence's tree; it does not decide what is
 * committed. Its rows may lag behind the text: the next step computes the missing ones. */
#ifndef DT_DRAFT_H
#define DT_DRAFT_H

#include "draft/adjustments.h"
#include "pair/pair.h"

/* A sequence as its drafter sees it; all of it is the session's. */
typedef struct {
  const int32_t *tokens; /* [length] committed; the last one is the tree's root */
  int length;
  dt_tree *tree;
  const adjustments *adjustments; /* of the target's logits, by which guesses are ranked too; NULL: none */
  dt_stats *stats; /* the drafter counts draft_passes, draft_rows, draft_ms, and adds its prompt's time to prompt_ms */
} draft_text;

typedef struct drafter drafter;
typedef struct draft_saved draft_saved; /* a drafter's rows of a prompt */

typedef struct {
  void (*close)(drafter *);

  /* A sequence begins over n prompt tokens, the first `same` of which are those it began with before. Nothing runs: a
   * text may never ask for a guess. */
  void (*start)(drafter *, int seq, int n, int same);
  /* At most `most` of the rows of the prompt that are lacking, in a pass of their own, which prompt_ms counts. *left:
   * those that still are. A first step runs them all. */
  dt_status (*prompt)(drafter *, int seq, const draft_text *, int most, int *left, dt_error *);
  /* How many of a text's first n tokens get rows, and how many of these are there: the next step computes the
   * others. */
  int (*rows)(const drafter *, int seq, int n, int *there);
  /* A sequence over any n tokens, for measuring: without the time that a prompt takes. */
  dt_status (*blank)(drafter *, int seq, int n, dt_error *);
  /* Copies a sequence's rows of the first n tokens, as many as there are, and begins another sequence of the pair with
   * them. */
  dt_status (*save)(const drafter *, int seq, int n, draft_saved **, dt_error *);
  dt_status (*restore)(drafter *, int seq, const draft_saved *, int n, dt_error *);
  void (*forget)(draft_saved *); /* NULL is allowed */

  /* An empty tree over `length` committed tokens. */
  void (*begin)(drafter *, int seq, int length);

  /* dt_draft_step for existing nodes of open trees: afterwards each has a draft result. `texts` has an entry for each
   * sequence, filled for the nodes' sequences. A failed pass changes nothing; passes before it count. */
  dt_status (*step)(drafter *, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *);

  /* The first n nodes of `path` were committed after `before` tokens, and one more token after them. */
  dt_status (*keep)(drafter *, int seq, int before, const int32_t *path, int n, dt_error *);
} draft_ops;

struct drafter {
  const draft_ops *ops;
};

/* Draft `which` of the pair, a model or a head, as a drafter. `sampling`: [sequences] for ranking candidates; `target`:
 * the target's cache, which a head reads. The session owns both. */
dt_status draft_model_open(const dt_pair *pair, int which, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err);
/* The same for a Medusa head, which has no cache rows. */
dt_status draft_medusa_open(const dt_pair *pair, int which, int sequences, int context, const dt_sampling *sampling,
                            const dt_cache *target, drafter **out, dt_error *err);
/* The same for a cross-attention head, which has features of a tree's nodes, and no other rows. */
dt_status draft_cross_attention_open(const dt_pair *pair, int which, int sequences, int context,
                                     const dt_sampling *sampling, const dt_cache *target, drafter **out, dt_error *err);
/* Slots of a sequence in its cache. */
int draft_model_slots(const dt_pair *pair, int which, int context);

#endif
