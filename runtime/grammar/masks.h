/* The tokens that a grammar allows behind a text. A state is all that a grammar's rules say of the bytes so far: a set of stacks of
 * nodes, of rules that are open. States, and their masks over a vocabulary, are computed when they are needed first, and kept; a
 * result depends on the grammar and the text only. One thread at a time. */
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

/* A place for the state of a text, the empty one's at first; -1: no memory. */
int masks_enter(masks *m);
void masks_leave(masks *m, int place);
int32_t masks_state(const masks *m, int place);
void masks_move(masks *m, int place, int32_t state);

/* The state behind one more token; `first`: of the text. */
int32_t masks_step(masks *m, int32_t state, int32_t token, bool first);
/* Whether the token may come, a token that ends the text among them. */
bool masks_allow(masks *m, int32_t state, int32_t token, bool first);
/* A bit for each id, (mask[id / 64] >> id % 64) & 1. Valid until masks_tidy. Behind MASKS_NOWHERE no token is allowed. */
int masks_ids(const masks *m); /* of the vocabulary */
const uint64_t *masks_of(masks *m, int32_t state, bool first);

/* Between passes: drops states, except those at places, if too much memory is in use. Their numbers change. */
void masks_tidy(masks *m);
/* The failure if there was no memory for a state: masks are wrong then. */
dt_status masks_failure(const masks *m, dt_error *err);
/* Why no token follows a text. */
dt_status masks_are_stuck(const masks *m, dt_error *err);

#endif
