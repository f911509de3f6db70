/* The tokens that a grammar allows after a text. A state is all that a grammar's rules say of the bytes so far: a set
 * of stacks of nodes, of rules that are open. States, and their masks over a vocabulary, are computed when they are
 * needed first, and kept; a result depends on the grammar and the text only. One thread at a time. */
#ifndef DT_MASKS_H
#define DT_MASKS_H

#include "grammar/vocabulary.h"

#define MASKS_NOWHERE (-1) /* the state of a text that the grammar does not allow */
#define MASKS_STACKS 4096  /* of a state, at most */

typedef struct masks masks;

/* Of a grammar (gbnf.h) over a vocabulary that lives longer, for one user. */
dt_status masks_open(const vocabulary *v, const char *gbnf, masks **out, dt_error *err);
masks *masks_hold(masks *m);  /* one more user */
void masks_release(masks *m); /* one less; NULL is allowed */
const char *masks_grammar(const masks *m);

/* The bytes that states may take, 128 MiB at first. What no text has taken yet is then not computed, and counts as
 * forbidden: a guess is not verified. A text ends in a failure if one of its states alone, with its mask, needs
 * more. */
void masks_limit(masks *m, size_t most);

/* A place for the state of a text, the empty one's at first; -1: no memory. Between passes, as masks_take. */
int masks_enter(masks *m);
void masks_leave(masks *m, int place);
int32_t masks_state(const masks *m, int place);
/* The text goes on by a token; `first`: its first. Drops states, except those at places, if too much memory is in use:
 * numbers of states and masks are valid until then. */
void masks_take(masks *m, int place, int32_t token, bool first);

/* The state behind one more token. */
int32_t masks_step(masks *m, int32_t state, int32_t token, bool first);
/* Whether the token may come, a token that ends the text among them. */
bool masks_allow(masks *m, int32_t state, int32_t token, bool first);
/* A bit for each id, (mask[id / 64] >> id % 64) & 1. Behind MASKS_NOWHERE no token is allowed. */
int masks_ids(const masks *m); /* of the vocabulary */
const uint64_t *masks_of(masks *m, int32_t state, bool first);
const uint64_t *masks_of_text(masks *m, int place, bool first); /* of its state */

/* The bytes that every text has behind a state, `most` of them at most, and how many. */
int masks_forced(masks *m, int32_t state, char *bytes, int most);

/* The failure if a text's state found no room, or there was no memory: masks are wrong then. */
dt_status masks_failure(const masks *m, dt_error *err);
/* Why no token follows a text. */
dt_status masks_are_stuck(const masks *m, dt_error *err);

#endif
