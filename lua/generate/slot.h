/* A slot: one sequence of a session from its prompt to its result. It holds the request, the sequence's emitted text
 * and trace, and its result. The stepper grows the sequence's trees; slots.h runs several slots at once; dtl_generate
 * and dtl_engine decide which request a slot serves next.
 *
 * A slot's index in slots.slot is its sequence's number in the session. For each request the owner fills the fields
 * policy, request, result and number, and slots.c then calls, in this order:
 *
 *   slot_open(s, pair, &err)
 *   slot_start(s, session, seq, NULL, &err)   the prompt pass
 *   slot_committed(s, policy_ms)              after every iteration, while slot_runs(s)
 *   slot_end(s, failure, &err)                always, once it has started: the result is complete
 *   slot_close(s)                             always */
#ifndef DTL_SLOT_H
#define DTL_SLOT_H

#include "box/policy.h"
#include "box/run.h"
#include "generate/trace.h"

typedef enum {
  SLOT_FREE,
  SLOT_QUEUED,  /* only in an engine: its prompt has not begun */
  SLOT_PROMPT,  /* its prompt is processed, in one pass or in pieces */
  SLOT_RUNNING, /* it takes part in iterations */
} slot_state;

typedef struct slot {
  slot_state state;

  /* What it serves. They must outlive the sequence. */
  const dtl_policy *policy;
  const dtl_request *request;
  dtl_result *result;
  int number; /* number of the answer, from 0, among those to its request's prompts */

  /* The sequence while it runs. */
  dt_pair *pair;
  const dtl_prompt *prompt;
  dt_seq_options options; /* the request's, with this answer's seed */
  dtl_run *run;
  struct stepper *stepper;
  double start_ms;
  size_t emitted;  /* bytes of the text given to on_text */
  bool enough;     /* on_text returned false */
  uint8_t *origin; /* [context] origin of each generated token; NULL: not wanted */
  trace_state traced;
  int at; /* the token that the next byte to emit belongs to, or one before it */

  /* In an engine `request` and `result` point to these copies. */
  dtl_request copy;
  dtl_prompt copied; /* the request's prompt, as ids that the slot owns */
  dtl_result own;
  bool alone; /* its cached rows must not serve other requests */
  long turn;  /* turn in which its last piece ran, or in which it became free */
} slot;

/* The token ids of a prompt that is given as text or as ids. *ids is malloc'd and owned by the caller. */
dt_status prompt_ids(const dt_pair *pair, const dtl_prompt *prompt, int32_t **ids, int *n, dt_error *err);

/* Fills the parts of the result that are known before the run. After a failure only slot_close may be called. */
dt_status slot_open(slot *s, dt_pair *pair, dt_error *err);

/* Runs the prompt pass as sequence `seq` of the session. shared: NULL, unless several answers share the pass of their
 * prompt: then the first one stores the prefix in *shared, which the caller frees. */
dt_status slot_start(slot *s, dt_session *session, int seq, dt_prefix **shared, dt_error *err);

/* Whether the sequence needs more tokens and was not interrupted. */
bool slot_runs(const slot *s);

/* Emits the text that the iteration committed, and writes the iteration into the trace. policy_ms: policy overhead of
 * this iteration. */
void slot_committed(slot *s, double policy_ms);

/* Completes the result. failure: why the sequence ended early, or NULL. DT_ENOMEM: the result is incomplete. */
dt_status slot_end(slot *s, const dt_error *failure, dt_error *err);

void slot_close(slot *s);

#endif
