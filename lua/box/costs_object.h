/* Costs as Lua sees them, in policies and in drivers (costs_object.c). */
#ifndef DTL_BOX_COSTS_OBJECT_H
#define DTL_BOX_COSTS_OBJECT_H

#include "measure/learn.h"

#include <lua.h>

/* Pushes an object with the methods target, draft, first, sequences and revision, for so many `sequences` at once.
 * sampled: tokens are sampled; coupled: the draft uses their noise. It holds a copy. Raises. */
void box_costs_push(lua_State *L, const dtl_costs *costs, int sequences, bool sampled, bool coupled);

/* Learned costs, as those who count with them see them now. */
typedef struct {
  course *course;
  int sequences; /* at once */
} learned_view;

/* The same for learned costs, always the latest, with what the policy of this digest knows of the pair; *view, which
 * may change between calls, must outlive the object's use, and so must the digest. */
void box_costs_push_learned(lua_State *L, const learned_view *view, const char *digest);

#endif
