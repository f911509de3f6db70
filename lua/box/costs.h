/* Costs as Lua sees them, in policies and in drivers (costs.c). */
#ifndef DTL_BOX_COSTS_H
#define DTL_BOX_COSTS_H

#include "measure/learn.h"

#include <lua.h>

/* Pushes an object with the methods target, draft, first, sequences and revision, for `places` sequences at once, tokens drawn or
 * not, and guesses with their noise or not; it holds a copy. Raises. */
void box_costs_push(lua_State *L, const dtl_costs *costs, int places, bool draws, bool coupled);

/* The same of costs that are learned, as they are at any time; the course outlives the object's use. */
void box_costs_push_learned(lua_State *L, const course *c, int places);

#endif
