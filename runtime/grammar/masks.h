/* Computes which tokens a grammar allows after a text, from the states of the grammar (states.h). Masks over the
 * vocabulary are computed when they are first needed, and cached; results depend only on the grammar and the text. Not
 * thread-safe. */
#ifndef DT_MASKS_H
#define DT_MASKS_H

#include "grammar/states.h"
#include "grammar/vocabulary.h"

#define MASKS_NOWHERE STATES_NOWHERE
#define MASKS_STACKS STATES_STACKS

typedef struct masks masks;

/* Opens the masks of a grammar (gbnf.h) over a vocabulary, which must outlive them, with one reference. */
dt_status masks_open(const vocabulary *v, const char *gbnf, masks **out, dt_error *err);
masks *masks_hold(masks *m);  /* adds a reference */
void masks_release(masks *m); /* removes a reference; NULL is allowed */
const char *masks_grammar(const masks *m);
size_t masks_bytes(const masks *m); /* memory in use */

/* Sets the maximum memory for states in bytes; the default is 128 MiB. Beyond it, states that no text has reached are
 * not computed and count as forbidden, so guesses there are not verified. A text fails if one of its states alone, with
 * its mask, needs more. */
void masks_limit(masks *m, size_t most);

/* Returns a place for the state of a text, which begins as that of the empty text; -1: out of memory. Call it between
 * passes, like masks_take. */
int masks_enter(masks *m);
void masks_leave(masks *m, int place);
int32_t masks_state(const masks *m, int place);
/* Appends a token to the text at a place; `first`: it is the first of the text. If too much memory is in use, drops all
 * states except those at places; until then, state numbers and masks remain valid. */
void masks_take(masks *m, int place, int32_t token, bool first);

/* Returns the state after one more token. */
int32_t masks_step(masks *m, int32_t state, int32_t token, bool first);
/* Returns whether the token is allowed; it may also be one that ends the text. */
bool masks_allow(masks *m, int32_t state, int32_t token, bool first);
/* masks_of and masks_of_text return a mask with one bit for each id: (mask[id / 64] >> id % 64) & 1. In the state
 * MASKS_NOWHERE no token is allowed. */
int masks_ids(const masks *m); /* number of ids of the vocabulary */
const uint64_t *masks_of(masks *m, int32_t state, bool first);
const uint64_t *masks_of_text(masks *m, int place, bool first); /* for the state at a place */

/* Writes the bytes with which every allowed text continues after a state, at most `most` of them, and returns how many.
 * *token: the token that comes before them, because the grammar demands a token there; otherwise -1. */
int masks_forced(masks *m, int32_t state, int32_t *token, char *bytes, int most);

/* Fails if there was not enough memory for the state of a text; the masks are wrong then. */
dt_status masks_failure(const masks *m, dt_error *err);
/* Fails with a message that says why no token can follow a text. */
dt_status masks_are_stuck(const masks *m, dt_error *err);

#endif
