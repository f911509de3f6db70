/* Costs as Lua sees them, in policies and in drivers (costs_object.c). */
#ifndef DTL_BOX_COSTS_OBJECT_H
#define DTL_BOX_COSTS_OBJECT_H

#include "measure/learn.h"

#include <lua.h>

/* Pushes the costs object of a table, which it copies, for runs of `sequences` sequences at once. sampled: tokens are
 * sampled; coupled: the draft samples with the target's noise. Raises. */
void box_costs_push(lua_State *L, const dtl_costs *costs, int sequences, bool sampled, bool coupled);

/* The learned costs that a policy uses now. */
typedef struct {
  course *course;
  int sequences; /* number that run at once */
} learned_view;

/* Pushes the costs object of learned costs, which always has the latest ones. digest: that of the policy's text, which
 * identifies what the policy has kept about the pair (costs:keep). *view may change between calls; it and the digest
 * must outlive the object's use. Raises. */
void box_costs_push_learned(lua_State *L, const learned_view *view, const char *digest);

#endif
