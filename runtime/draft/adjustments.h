/* Computes the logit adjustments (backend/adjustment.h) of a sequence from its text, updating them as the text grows,
 * and from each path of guesses after the text. The same adjustments apply to the rows of the target and of its
 * draft. */
#ifndef DT_ADJUSTMENTS_H
#define DT_ADJUSTMENTS_H

#include "backend/adjustment.h"
#include "draft/reasoning_limit.h"
#include "dtrun.h"
#include "grammar/masks.h"
#include "tree/tree.h"

/* What is known about an id that may have an adjustment. */
typedef struct {
  float bias;
  int count;       /* how often it is in the generated text */
  bool seen, ends; /* it is in the text; it ends a text */
} adjustments_known;

typedef struct {
  dt_adjustments asked; /* its pointers (biases, grammar, marks) are NULL */
  bool counts;          /* a penalty is asked for, so the ids of the text must be counted */
  int generated;
  masks *masks;           /* of the grammar; NULL: none */
  int place;              /* the text's place in the masks: see masks_enter */
  reasoning_limit *limit; /* NULL: none */
  int n, capacity;
  dt_adjustment *text;      /* [n] sorted by id */
  adjustments_known *known; /* [n] for the same ids */
} adjustments;

/* The adjustments of the rows of a pass. The lists of their paths are stored one after another. */
typedef struct {
  dt_row_adjustments *row; /* [rows] */
  dt_adjustment *entry;    /* [entries] */
  int *more;               /* [entries] how often the id is on the path */
  int n;                   /* entries in use */
} row_adjustments;

/* Checks everything except token ids. DT_EINPUT: a value is out of range, or two options exclude each other. */
dt_status adjustments_check(const dt_adjustments *asked, const dt_seq_options *options, dt_error *err);

/* Checks the ids of the biases, and that they do not ban all `vocab` ids. ends: the n_ends ids that end a text. */
dt_status adjustments_check_ids(const dt_adjustments *asked, int vocab, const int32_t *ends, int n_ends, dt_error *err);

/* Opens the adjustments of a text of up to `context` tokens. The n_ends ids that end a text are banned until min_tokens
 * tokens are generated. `of`: the masks of the grammar, to which the adjustments then hold a reference; NULL: no
 * grammar. */
dt_status adjustments_open(adjustments *s, const dt_adjustments *asked, masks *of, int context, const int32_t *ends,
                           int n_ends, dt_error *err);
/* Adds a limit on the reasoning, if one is asked for. Nothing is generated yet. */
dt_status adjustments_limit(adjustments *s, const dt_pair *pair, const dt_reasoning_limit *asked, dt_error *err);
void adjustments_close(adjustments *s); /* zeros are allowed */

/* Adds the prompt, or one generated token, to the text. */
void adjustments_prompt(adjustments *s, const int32_t *tokens, int n);
void adjustments_token(adjustments *s, int32_t token);
/* Begins an empty tree over the text's last token. */
void adjustments_begin_tree(adjustments *s);

/* Returns whether some guesses may be forbidden: there is a grammar, or a limit on the reasoning. */
bool adjustments_forbid(const adjustments *s);
/* Returns whether the token may follow a node of the tree over the text's last token. */
bool adjustments_allow(const adjustments *s, const dt_tree *t, int node, int32_t token);
/* Returns the id that the limit on the reasoning forces there, as reasoning_limit_forced does, unless the grammar does
 * not allow it. */
int32_t adjustments_forced_id(const adjustments *s, const dt_tree *t, int node, int *left);
/* Returns what the grammar forces there, as masks_forced does. *first: whether it is the first of the text. */
int adjustments_forced(const adjustments *s, const dt_tree *t, int node, int32_t *token, char *bytes, int most,
                       bool *first);

/* Returns whether no token may follow the text. */
bool adjustments_are_stuck(const adjustments *s);

/* Allocates room for passes of up to `rows` rows, with up to `guesses` guesses on all their paths together. */
dt_status row_adjustments_open(row_adjustments *r, int rows, size_t guesses, dt_error *err);
void row_adjustments_close(row_adjustments *r); /* zeros are allowed */
void row_adjustments_begin(row_adjustments *r); /* begins a pass */
/* Sets the adjustments of row i: those of the text and of the path to this node of the tree over its last token. s may
 * be NULL: no adjustments. */
void row_adjustments_put(row_adjustments *r, int i, const adjustments *s, const dt_tree *t, int node);

#endif
