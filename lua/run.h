/* One sequence being generated as the policy's calls see it: its place in the session, and where its iteration stands.
 * The userdata `tree` and `seq` hold a pointer to it, which is taken away when the sequence ends.
 *
 * The passes are called with any number of runs of one session and serve all of them at once. A run in lockstep does not
 * call its passes itself: the policy's call waits, and who drives the runs does it for all that wait. */
#ifndef DTL_RUN_H
#define DTL_RUN_H

#include "box.h"
#include "learn.h"

#include <lauxlib.h>

#define RUN_ROLLBACKS 8 /* most of one step */

typedef enum { RUN_INIT, RUN_DRAFT, RUN_VERIFIED, RUN_COMMITTED } run_phase;
typedef enum { RUN_DRAFT_PASS, RUN_VERIFY_PASS } run_pass;

typedef struct dtl_run {
  dt_session *session;
  int seq; /* of the session */
  int id;  /* how Lua counts it: which of the policy object's sequences it is, from 1 */
  dt_tree *tree;
  bool drafts, lockstep; /* drafts: the policy may draft, and there is a model to */
  course *course;        /* that learns from its passes; NULL: nobody does */
  double temp;           /* that its tokens are sampled with; 0: they are not */
  int candidates;        /* of the target's after every verified row, that it asked for */
  run_phase phase;
  run_pass awaits;                       /* what a call that waits waits for */
  int rollbacks;                         /* of this step */
  double draft_ms, verify_ms, commit_ms; /* of this iteration */
  dt_verdict verdict;
  dt_committed block; /* valid in RUN_COMMITTED */
  dt_error failure;   /* how the last pass went */
  struct run_handle *tree_handle, *seq_handle;
  int n_refs;
  dt_node_ref refs[1 + DT_TREE_ENTRIES]; /* what the next draft pass is for */
  int32_t ids[1 + DT_TREE_ENTRIES];
} dtl_run;

/* Begins an iteration: an empty tree. */
dt_status run_begin(dtl_run *run, dt_error *err);

/* One pass for all these runs of a session, n >= 1: of the draft model for the nodes in their refs, of the target for their
 * trees, and the commit. How it went is in each one's failure: what one run did wrong does not touch the others. They return how
 * many ms it took. */
double run_draft(dtl_run *const *runs, int n);
double run_verify(dtl_run *const *runs, int n);
double run_commit(dtl_run *const *runs, int n, unsigned flags);

/* ---- objects ----------------------------------------------------------------------------------------------------------- */

/* The content of a run's userdata. `kind` is one of the addresses below, which no other userdata begins with. */
typedef struct run_handle {
  const char *kind;
  dtl_run *run; /* NULL: its sequence has ended */
} run_handle;

extern const char run_tree_kind[], run_seq_kind[];

/* Pushes a new handle with n_values user values. Raises. */
run_handle *run_push_handle(lua_State *L, const char *kind, dtl_run *run, int n_values);

/* The run of the handle at index 1; raises where that is none of this kind, or one whose sequence has ended. */
dtl_run *run_check(lua_State *L, const char *kind, const char *who);

/* The same for an argument, at index i, of a method of something else. */
dtl_run *run_check_at(lua_State *L, int i, const char *kind, const char *who);

/* Takes the run away from its objects. */
void run_detach(dtl_run *run);

/* Makes the new userdata on top an object of the kind `name` with these methods. Leaves userdata, methods. */
void run_object(lua_State *L, const char *name, const luaL_Reg *methods);

/* Makes the new userdata on top one of the type `name` with these methods, which luaL_testudata knows. Leaves userdata. */
void run_type(lua_State *L, const char *name, const luaL_Reg *methods);

/* Raises for the field at index 2 that `kind` ("a tree") has not, with the nearest of its names[n]. */
int run_no_field(lua_State *L, const char *kind, const char *const *names, int n);

/* Gives the table of methods on top an error for what is not in it, with the name that is nearest. */
void run_name_unknown(lua_State *L, const char *name);

/* Pushes tree and makes its handle the run's; field seq is set by box_seq_push. Raises. */
void box_tree_push(lua_State *L, dtl_run *run);
void box_seq_push(lua_State *L, dtl_run *run); /* stack: tree -> tree, seq; ties the two together */

/* ---- the text of a run ----------------------------------------------------------------------------------------------------- */

#define RUN_MATCH 64 /* tokens that are compared at most */

/* How many tokens before and at a place of a text, counted from 0, are its last ones. */
int run_common(const int32_t *text, int length, int place, int most);

/* The place before the end where most of the last tokens stand too, `most` of them at most: of equals the latest; -1: not even
 * the last one does. *equal: how many. */
int run_find_end(const int32_t *text, int length, int most, int *equal);

/* ---- methods ------------------------------------------------------------------------------------------------------------ */

/* tree:draft_step and seq:draft_step: nodes at index 2, their number at 3. */
int run_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Puts the nodes at index i, a list (of which as many as the number at index n_index says, nil: all) or one node, into the
 * run's refs, after checking that it may draft now. */
void run_read_refs(lua_State *L, dtl_run *run, int i, int n_index, const char *who);

/* Leaves out of the run's refs what has been drafted from: no pass, and no waiting for one, without something to do. */
void run_drop_drafted(dtl_run *run);

/* Has a pass done, alone or in lockstep, and goes on with then(L, .., context). Use as return run_await(...). */
int run_await(lua_State *L, dtl_run *run, run_pass pass, lua_KContext context, lua_KFunction then);

/* Raises unless a tree of this iteration is at hand. */
void run_check_iteration(lua_State *L, const dtl_run *run, const char *who);

/* Raises for what the last pass failed with, or ends the call when the engine itself failed; else goes on. */
void run_check_pass(lua_State *L, const dtl_run *run, const char *who);

/* The same for what a call of the engine failed with. */
int run_fail(lua_State *L, const dt_error *err, const char *who);

/* The flags in the table of options at index 2 of a commit. */
unsigned run_commit_flags(lua_State *L, const char *who);

/* Fills the table `out` of the sequence at index seq after a verify pass, or a commit. */
void box_seq_verified(lua_State *L, int seq, const dtl_run *run);
void box_seq_committed(lua_State *L, int seq, const dtl_run *run);

/* The integer argument i; `who` and `what` name it in the message. */
lua_Integer run_integer(lua_State *L, int i, const char *who, const char *what);

#endif
