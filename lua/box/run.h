/* A run is one sequence being generated, as the policy's calls see it: its slot in the session and the state of its
 * current iteration. The userdata `tree` and `seq` hold a pointer to it, which is cleared when the sequence ends.
 *
 * One pass serves any number of runs of a session at once. In lockstep a run does not make its passes itself: the
 * policy's call waits, and the scheduler (slots.c) makes one pass for all runs that wait. */
#ifndef DTL_RUN_H
#define DTL_RUN_H

#include "box/box.h"
#include "measure/learn.h"

#include <lauxlib.h>

#define RUN_ROLLBACKS 8 /* maximum number of rollbacks in one step */

typedef enum { RUN_INIT, RUN_DRAFT, RUN_VERIFIED, RUN_COMMITTED } run_phase;
typedef enum { RUN_DRAFT_PASS, RUN_VERIFY_PASS } run_pass;

/* seq:clock: sums the costs of the passes that a sequence took part in, each by `costs` at the time of the pass. costs
 * is NULL if the policy does not use them. */
typedef struct {
  const dtl_costs *costs;
  double target_sample, draft_sample; /* ms a row */
  double ms;
} run_clock;

/* The last call that found no room for any of the nodes it should add. The message about a node that does not exist
 * names it. */
typedef struct {
  const char *who; /* "tree:branch"; NULL: there was none */
  int node;        /* id that its first node would have had */
  int under;       /* node that should have got children */
} run_full;

typedef struct dtl_run {
  dt_session *session;
  int seq; /* number of its sequence in the session */
  int id;  /* its number among the policy object's sequences, from 1 */
  dt_tree *tree;
  bool drafts; /* the policy may draft */
  bool lockstep;
  course *course; /* learns from its passes; or NULL */
  double temp;    /* temperature of sampling; 0: the likeliest token */
  int candidates; /* uses.target: how many candidates of the target it wants after each verified row */
  run_phase phase;
  run_pass awaits;                       /* the pass that a waiting call waits for */
  run_full full;                         /* concerns this iteration's tree */
  int rollbacks;                         /* in this step */
  int pause;                             /* plain iterations left, in which the policy is not called */
  int resume_at;                         /* the pause ends early if this many last tokens occur earlier; 0: never */
  int paused;                            /* plain iterations since the policy was called */
  bool plain;                            /* this iteration is plain */
  double draft_ms, verify_ms, commit_ms; /* in this iteration */
  bool drafted;                          /* the draft has had a pass in this iteration */
  int sharers;                           /* runs that shared the last draft pass, this one included */
  dt_verdict verdict;
  dt_committed block;                  /* valid in RUN_COMMITTED */
  dt_error failure;                    /* outcome of the last pass */
  dtl_notes *notes;                    /* owned by the result: see notes.h */
  uint8_t tag_of[1 + DT_TREE_ENTRIES]; /* by node: 0, or 1 + the index of its tag in notes */
  bool is_new[DTL_NOTES];              /* logged in this iteration */
  run_clock clock;
  struct run_handle *tree_handle, *seq_handle;
  int n_refs;
  dt_node_ref refs[1 + DT_TREE_ENTRIES]; /* nodes of the next draft pass */
  int32_t ids[1 + DT_TREE_ENTRIES];
} dtl_run;

/* Begins an iteration with an empty tree. */
dt_status run_begin(dtl_run *run, dt_error *err);

/* Make one pass, or one commit, for n >= 1 runs of a session: run_draft a pass of the draft over the nodes in their
 * refs, run_verify one target pass over their trees. Each run's `failure` has the outcome; a mistake in one run does
 * not affect the others. They return the time in ms. */
double run_draft(dtl_run *const *runs, int n);
double run_verify(dtl_run *const *runs, int n);
double run_commit(dtl_run *const *runs, int n, unsigned flags);

/* ---- for methods ------------------------------------------------------------------------------------------------- */

/* Makes a pass, for this run alone or in lockstep, and continues with then(L, .., context). Use as return
 * run_await(...). */
int run_await(lua_State *L, dtl_run *run, run_pass pass, lua_KContext context, lua_KFunction then);

/* Raises unless the run is in an iteration that has not committed yet. */
void run_check_iteration(lua_State *L, const dtl_run *run, const char *who);

/* Raises the failure of the last pass; if the engine itself failed, ends the call. Returns if there was none. */
void run_check_pass(lua_State *L, const dtl_run *run, const char *who);

/* Raises the failure err of a call of the engine; if the engine itself failed, ends the call. */
int run_fail(lua_State *L, const dt_error *err, const char *who);

#endif
