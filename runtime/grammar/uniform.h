/* Finds characters that a grammar treats in the same way after a state: all of them lead to one state. */
#ifndef DT_UNIFORM_H
#define DT_UNIFORM_H

#include "grammar/alike.h"
#include "grammar/states.h"

/* Finds the largest set of characters that lead to the same state, other than STATES_NOWHERE. False: it is small. */
bool uniform_set(states *s, int32_t from, alike_set *set);
/* Returns whether all characters of a set lead to one state, *to. */
bool uniform_leads(states *s, int32_t from, const alike_set *set, int32_t *to);

#endif
