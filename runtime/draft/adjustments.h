/* The logit adjustments (backend/adjustment.h) that follow from a sequence's text, updated as it grows, and from each
 * path of guesses after it. They apply to the rows of the target and of its draft alike. */
#ifndef DT_ADJUSTMENTS_H
#define DT_ADJUSTMENTS_H

#include "backend/adjustment.h"
#include "dtrun.h"
#include "grammar/masks.h"
#include "tree/tree.h"

/* What is known of an id that may have an adjustment. */
typedef struct {
  float bias;
  int count;       /* in the generated text */
  bool seen, ends; /* it is in the text; it ends one */
} adjustments_known;

typedef struct {
  dt_adjustments asked; /* its list of biases, its grammar: NULL */
  bool counts;          /* a penalty is asked for: what the text holds matters */
  int generated;
  masks *masks; /* the grammar's; NULL: none */
  int place;    /* of the text in them */
  int n, capacity;
  dt_adjustment *text;      /* [n] by rising id */
  adjustments_known *known; /* [n] of the same ids */
} adjustments;

/* The adjustments of a pass's rows; the lists of their paths are stored one after the other. */
typedef struct {
  dt_row_adjustments *row; /* [rows] */
  dt_adjustment *entry;    /* [entries] */
  int *more;               /* [entries] how often the id is on the path */
  int n;                   /* entries in use */
} row_adjustments;

/* Checks all but token ids. DT_EINPUT: a value is out of range, or two exclude each other. */
dt_status adjustments_check(const dt_adjustments *asked, const dt_seq_options *options, dt_error *err);

/* Checks the ids of biases, and that some id is left of `vocab`; n_ends ids end a text. */
dt_status adjustments_check_ids(const dt_adjustments *asked, int vocab, const int32_t *ends, int n_ends, dt_error *err);

/* For texts of up to `context` tokens; the ids that end one are not to come before the least number of tokens. `of`:
 * the grammar's masks, to which the adjustments then hold a reference; NULL: none. */
dt_status adjustments_open(adjustments *s, const dt_adjustments *asked, masks *of, int context, const int32_t *ends,
                           int n_ends, dt_error *err);
void adjustments_close(adjustments *s); /* zeros are allowed */

/* The text goes on. */
void adjustments_prompt(adjustments *s, const int32_t *tokens, int n);
void adjustments_token(adjustments *s, int32_t token);

/* Whether the grammar allows the token after a node of the tree over the text's last token. */
bool adjustments_allow(const adjustments *s, const dt_tree *t, int node, int32_t token);
/* The bytes that every text has there, as masks_forced. *first: the text's first. */
int adjustments_forced(const adjustments *s, const dt_tree *t, int node, char *bytes, int most, bool *first);

/* Whether no token may follow the text. */
bool adjustments_are_stuck(const adjustments *s);

/* For passes of up to `rows` rows, with up to `guesses` guesses on all their paths together. */
dt_status row_adjustments_open(row_adjustments *r, int rows, size_t guesses, dt_error *err);
void row_adjustments_close(row_adjustments *r); /* zeros are allowed */
void row_adjustments_begin(row_adjustments *r); /* a pass begins */
/* Sets row i's adjustments: the text's, as they are after this node of the tree over its last token. NULL: none. */
void row_adjustments_put(row_adjustments *r, int i, const adjustments *s, const dt_tree *t, int node);

#endif
