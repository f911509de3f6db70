/* One sequence being generated as the policy's calls see it: its place in the session, and where its iteration stands.
 * The userdata `tree` and `seq` hold a pointer to it, which is taken away when the sequence ends.
 *
 * The passes are called with any number of runs of one session and serve all of them at once. A run in lockstep does not
 * call its passes itself: the policy's call waits, and who drives the runs does it for all that wait. */
#ifndef DTL_RUN_H
#define DTL_RUN_H

#include "box/box.h"
#include "measure/learn.h"

#include <lauxlib.h>

#define RUN_ROLLBACKS 8 /* most of one step */

typedef enum { RUN_INIT, RUN_DRAFT, RUN_VERIFIED, RUN_COMMITTED } run_phase;
typedef enum { RUN_DRAFT_PASS, RUN_VERIFY_PASS } run_pass;

/* What passes cost that a sequence took part in, each as `costs` says when it is made; costs NULL: nobody asks. */
typedef struct {
  const dtl_costs *costs;
  double target_draw, draft_draw; /* ms a row */
  double ms;
} run_clock;

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
  dt_committed block;                  /* valid in RUN_COMMITTED */
  dt_error failure;                    /* how the last pass went */
  dtl_notes *notes;                    /* the result's: see notes.h */
  uint8_t tag_of[1 + DT_TREE_ENTRIES]; /* by node: 0, or 1 + the place of its tag in notes */
  bool is_new[DTL_NOTES];              /* logged in this iteration */
  run_clock clock;
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

/* ---- for methods ---------------------------------------------------------------------------------------------------------- */

/* Has a pass done, alone or in lockstep, and goes on with then(L, .., context). Use as return run_await(...). */
int run_await(lua_State *L, dtl_run *run, run_pass pass, lua_KContext context, lua_KFunction then);

/* Raises unless a tree of this iteration is at hand. */
void run_check_iteration(lua_State *L, const dtl_run *run, const char *who);

/* Raises for what the last pass failed with, or ends the call when the engine itself failed; else goes on. */
void run_check_pass(lua_State *L, const dtl_run *run, const char *who);

/* The same for what a call of the engine failed with. */
int run_fail(lua_State *L, const dt_error *err, const char *who);

#endif
