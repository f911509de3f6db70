/* What a sequence's text says of the logits after it (backend/shift.h): of the text's own tokens, kept up as it grows,
 * and of each path of guesses after it. The rows of the target and of its draft are shifted alike. */
#ifndef DT_SHIFTS_H
#define DT_SHIFTS_H

#include "backend/shift.h"
#include "dtrun.h"
#include "grammar/masks.h"
#include "tree/tree.h"

/* What is known of an id that some shift may be of. */
typedef struct {
  float bias;
  int count;       /* in the generated text */
  bool seen, ends; /* it is in the text; it ends one */
} shifts_known;

typedef struct {
  dt_shifts asked; /* its list of biases, its grammar: NULL */
  bool counts;     /* a penalty is asked for: what the text holds matters */
  int generated;
  masks *masks; /* the grammar's; NULL: none */
  int place;    /* of the text in them */
  int n, capacity;
  dt_shift *text;      /* [n] by rising id */
  shifts_known *known; /* [n] of the same ids */
} shifts;

/* The shifts of a pass's rows; the lists of their paths lie one behind the other. */
typedef struct {
  dt_row_shifts *row; /* [rows] */
  dt_shift *shift;    /* [entries] */
  int *more;          /* [entries] how often the id is on the path */
  int n;              /* entries in use */
} row_shifts;

/* Checks all but token ids. DT_EINPUT: a value is out of range, or two exclude each other. */
dt_status shifts_check(const dt_shifts *asked, const dt_seq_options *options, dt_error *err);

/* Checks the ids of biases, and that some id is left of `vocab`; n_ends ids end a text. */
dt_status shifts_check_ids(const dt_shifts *asked, int vocab, const int32_t *ends, int n_ends, dt_error *err);

/* For texts of up to `context` tokens; the ids that end one are not to come before the least number of tokens. `of`:
 * the grammar's masks, one use of which is the shifts' then; NULL: none. */
dt_status shifts_open(shifts *s, const dt_shifts *asked, masks *of, int context, const int32_t *ends, int n_ends,
                      dt_error *err);
void shifts_close(shifts *s); /* zeros are allowed */

/* The text goes on. */
void shifts_prompt(shifts *s, const int32_t *tokens, int n);
void shifts_token(shifts *s, int32_t token);

/* Whether the grammar allows the token behind a node of the tree over the text's last token. */
bool shifts_allow(const shifts *s, const dt_tree *t, int node, int32_t token);
/* The bytes that every text has there, as masks_forced. *first: the text's first. */
int shifts_forced(const shifts *s, const dt_tree *t, int node, char *bytes, int most, bool *first);

/* Whether no token may follow the text. */
bool shifts_are_stuck(const shifts *s);

/* For passes of so many rows, with so many guesses on all their paths. */
dt_status row_shifts_open(row_shifts *r, int rows, size_t guesses, dt_error *err);
void row_shifts_close(row_shifts *r); /* zeros are allowed */
void row_shifts_begin(row_shifts *r); /* a pass begins */
/* What row i gets: the text's shifts as they are behind this node of the tree over its last token. NULL: none. */
void row_shifts_put(row_shifts *r, int i, const shifts *s, const dt_tree *t, int node);

#endif
