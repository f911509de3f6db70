/* One generation as the policy's calls see it. The userdata `tree` and `seq` carry nothing: which they are is known by
 * their address, and what they stand for is here. */
#ifndef DTL_RUN_H
#define DTL_RUN_H

#include "box.h"

#include <lauxlib.h>

#define RUN_ROLLBACKS 8 /* most of one step */
#define RUN_SEQ_ID 1    /* how Lua counts the only sequence */

typedef enum { RUN_INIT, RUN_DRAFT, RUN_VERIFIED, RUN_COMMITTED } run_phase;

typedef struct dtl_run {
  dt_session *session;
  dt_tree *tree;
  bool uses_draft;
  run_phase phase;
  int rollbacks;                         /* of this step */
  double draft_ms, verify_ms, commit_ms; /* of this iteration */
  double engine_ms;                      /* inside the engine during this call into the policy */
  dt_verdict verdict;
  dt_committed block; /* valid in RUN_COMMITTED */
  dt_error failure;   /* when the box died of BOX_ENGINE_FAILED */
  const void *tree_object, *seq_object;
  int32_t ids[1 + DT_TREE_ENTRIES];
  dt_node_ref refs[1 + DT_TREE_ENTRIES];
} dtl_run;

/* Pushes a table of methods for the userdata below it on the stack and makes it its metatable. Raises. */
void lib_tree_push(lua_State *L, dtl_run *run); /* pushes tree; field seq is set by lib_seq_push */
void lib_seq_push(lua_State *L, dtl_run *run);  /* stack: tree -> tree, seq; ties the two together */

/* tree:draft_step and seq:draft_step: nodes at index 2, their number at 3. */
int run_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Raises for what a primitive failed with, or ends the call when the engine itself failed. */
int run_fail(lua_State *L, dtl_run *run, const char *who, const dt_error *err);

/* The integer argument i; `who` and `what` name it in the message. */
lua_Integer run_integer(lua_State *L, int i, const char *who, const char *what);

/* Makes the new userdata on top an object of the kind `name` with these methods (each gets nup upvalues, which are popped
 * from above the userdata). Leaves userdata, methods. */
void run_object(lua_State *L, const char *name, const luaL_Reg *methods, int nup);

#endif
