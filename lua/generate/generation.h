/* One sequence from its prompt to its result: its emitted text, its trace, its result. The stepper grows its trees. The
 * caller calls, in this order:
 *
 *   generation_open(&g, pair, policy, &request, prompt, &result, &err)
 *   generation_start(&g, session, seq, NULL, &err) the prompt pass
 *   generation_committed(&g, policy_ms)           after every iteration, while generation_runs(&g)
 *   generation_end(&g, failure)                   always, once it has started: the result is complete
 *   generation_close(&g)                          always */
#ifndef DTL_GENERATION_H
#define DTL_GENERATION_H

#include "box/policy.h"
#include "box/run.h"
#include "generate/trace.h"

typedef struct {
  dt_pair *pair;
  const dtl_request *request;
  const dtl_prompt *prompt;
  dt_seq_options options; /* the request's, with this prompt's seed */
  dtl_result *result;
  dtl_run *run;
  double start_ms;
  size_t emitted;  /* bytes of the text given to on_text */
  bool enough;     /* on_text returned false */
  uint8_t *origin; /* [context] of each generated token; NULL: not wanted */
  trace_state traced;
  int at; /* the token that the next byte to emit belongs to, or one before it */
} generation;

/* The ids of a prompt that is a text or ids: *ids is malloc'd. */
dt_status generation_ids(const dt_pair *pair, const dtl_prompt *prompt, int32_t **ids, int *n, dt_error *err);

/* For the request's prompt number `prompt`, from 0. Fills the result's head; policy will serve it. After a failure call
 * only generation_close. request and result must outlive it. */
dt_status generation_open(generation *g, dt_pair *pair, const dtl_policy *policy, const dtl_request *request,
                          int prompt, dtl_result *result, dt_error *err);

/* Runs the prompt pass in place `seq` of the session. shared: where several answers share it, else NULL: the first
 * leaves it there for the others, and the caller frees it. */
dt_status generation_start(generation *g, dt_session *session, int seq, dt_prefix **shared, dt_error *err);

/* Whether it wants more tokens and was not interrupted. */
bool generation_runs(const generation *g);

/* Emits the iteration's committed text, and writes the iteration into the trace. policy_ms: of this iteration. */
void generation_committed(generation *g, double policy_ms);

/* failure: NULL, or why it ended early. DT_ENOMEM: the result is not whole. */
dt_status generation_end(generation *g, const dt_error *failure, dt_error *err);

void generation_close(generation *g);

#endif
