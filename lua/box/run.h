/* One sequence being generated as the policy's calls see it: its place in the session, and where its iteration stands.
 * The userdata `tree` and `seq` hold a pointer to it, which is taken away when the sequence ends.
 *
 * One pass serves any number of runs of a session at once. In lockstep a run does not call its passes itself: the
 * policy's call waits, and the scheduler (slots.c) makes one pass for all runs that wait. */
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
  double target_sample, draft_sample; /* ms a row */
  double ms;
} run_clock;

/* The last call that was to add nodes and found no room for any, for the message about a node that is not there. */
typedef struct {
  const char *who; /* "tree:branch"; NULL: there was none */
  int node;        /* the id that its first node would have had */
  int under;       /* the node that was to get children */
} run_full;

typedef struct dtl_run {
  dt_session *session;
  int seq; /* of the session */
  int id;  /* its number among the policy object's sequences, from 1 */
  dt_tree *tree;
  int drafts; /* draft models that the policy may draft with */
  bool lockstep;
  course *course; /* learns from its passes; or NULL */
  double temp;    /* temperature of sampling; 0: the likeliest token */
  int candidates; /* how many of the target's it wants after every verified row */
  run_phase phase;
  run_pass awaits;                       /* the pass that a waiting call waits for */
  run_full full;                         /* of this iteration's tree */
  int rollbacks;                         /* of this step */
  int pause;                             /* plain iterations left, in which the policy is not called */
  int resume_at;                         /* the pause ends early if this many last tokens occur earlier; 0: never */
  int paused;                            /* plain iterations since the policy was called */
  bool plain;                            /* this one is */
  double draft_ms, verify_ms, commit_ms; /* of this iteration */
  bool drafted[DT_DRAFTS];               /* whether a draft has had a pass in it */
  int sharers;                           /* runs that asked the same draft in its last pass, it too */
  dt_verdict verdict;
  dt_committed block;                  /* valid in RUN_COMMITTED */
  dt_error failure;                    /* how the last pass went */
  dtl_notes *notes;                    /* the result's: see notes.h */
  uint8_t tag_of[1 + DT_TREE_ENTRIES]; /* by node: 0, or 1 + the place of its tag in notes */
  bool is_new[DTL_NOTES];              /* logged in this iteration */
  run_clock clock;
  struct run_handle *tree_handle, *seq_handle;
  int n_refs;
  dt_node_ref refs[1 + DT_TREE_ENTRIES]; /* nodes of the next draft pass, all of one draft */
  int32_t ids[1 + DT_TREE_ENTRIES];
} dtl_run;

/* Begins an iteration: an empty tree. */
dt_status run_begin(dtl_run *run, dt_error *err);

/* One pass for n >= 1 runs of a session: of each draft for the nodes in their refs, of the target for their trees; and
 * the commit. Each run's `failure` has its outcome, and a run's mistake does not affect the others. They return the
 * time in ms. */
double run_draft(dtl_run *const *runs, int n);
double run_verify(dtl_run *const *runs, int n);
double run_commit(dtl_run *const *runs, int n, unsigned flags);

/* ---- for methods ------------------------------------------------------------------------------------------------- */

/* Makes a pass, alone or in lockstep, and continues with then(L, .., context). Use as return run_await(...). */
int run_await(lua_State *L, dtl_run *run, run_pass pass, lua_KContext context, lua_KFunction then);

/* Raises unless a tree of this iteration is at hand. */
void run_check_iteration(lua_State *L, const dtl_run *run, const char *who);

/* Raises the failure of the last pass; if the engine itself failed, ends the call. Returns if there was none. */
void run_check_pass(lua_State *L, const dtl_run *run, const char *who);

/* The same for a failed call of the engine. */
int run_fail(lua_State *L, const dt_error *err, const char *who);

#endif
