/* What a sequence's text says of the logits behind it (backend/shift.h): of the text's own tokens, kept up as it grows, and of each
 * path of guesses behind it. */
#ifndef DT_SHIFTS_H
#define DT_SHIFTS_H

#include "backend/shift.h"
#include "dtrun.h"

/* What is known of an id that some shift may be of. */
typedef struct {
  float bias;
  int count;       /* in the generated text */
  bool seen, ends; /* it is in the text; it ends one */
} shifts_known;

typedef struct {
  dt_shifts asked; /* its list of biases: NULL */
  bool counts;     /* a penalty is asked for: what the text holds matters */
  int generated;
  int n, capacity;
  dt_shift *text;      /* [n] by rising id */
  shifts_known *known; /* [n] of the same ids */
} shifts;

/* Lists of paths, one behind the other: room for a pass is taken once. */
typedef struct {
  int n, capacity;
  dt_shift *shift; /* [n] */
  int *more;       /* [n] how often the id is on the path */
} shifts_paths;

/* Whether any shift is asked for. */
bool shifts_wanted(const dt_shifts *asked);
/* Of a text of n tokens to generate behind, n_ends ids that end one. DT_EINPUT: out of range, or senseless together. */
dt_status shifts_check(const dt_shifts *asked, int vocab, const dt_seq_options *options, const int32_t *ends,
                       int n_ends, dt_error *err);

/* For texts of up to `context` tokens; the ids that end one are not to come before the least number of tokens. */
dt_status shifts_open(shifts *s, const dt_shifts *asked, int context, const int32_t *ends, int n_ends, dt_error *err);
void shifts_close(shifts *s); /* zeros are allowed */

/* The text goes on. */
void shifts_prompt(shifts *s, const int32_t *tokens, int n);
void shifts_token(shifts *s, int32_t token);

/* Of the row of the text's last token. */
dt_row_shifts shifts_root(const shifts *s);
/* Of the row of a guess, `token`, at this depth, given those of its parent; the lists of its path go behind those in `paths`, in
 * which there is room for `depth` and all ends. */
dt_row_shifts shifts_child(const shifts *s, shifts_paths *paths, const dt_row_shifts *parent, int32_t token, int depth);

#endif
