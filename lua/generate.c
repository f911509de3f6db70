/* Generating one sequence alone: see dtl_generate. */
#include "stepper.h"

/* With a session open: the sequence from its start to its end. */
static bool run_alone(generation *g, stepper *s, dt_session *session, dtl_error *err) {
  if (!generation_start(g, session, 0, err)) return false;
  dtl_error failure;
  bool joined = stepper_join(s, g, &failure), ok = joined;
  while (ok && generation_runs(g)) ok = stepper_step(s, &failure);
  bool whole = generation_end(g, ok ? NULL : &failure, ok ? err : NULL);
  if (joined) stepper_leave(s, g);
  if (!ok && err) *err = failure;
  return ok && whole;
}

bool dtl_generate(dt_pair *pair, dtl_policy *policy, const dtl_request *request, dtl_result *result, dtl_error *err) {
  generation g = {0};
  stepper s;
  dt_session *session = NULL;
  dt_session_options options = {.sequences = 1, .context = request->context, .use_draft = policy->info.uses_draft};
  dt_error engine;
  *result = (dtl_result){.finish_reason = "error"};
  bool ok = stepper_check(policy, pair, request->costs, err) && generation_open(&g, pair, policy, request, result, err);
  if (ok) stepper_open(&s, policy, request->costs, 1);
  if (ok && dt_session_open(pair, &options, &session, &engine)) ok = dtl_fail_engine(err, &engine);
  if (ok) ok = run_alone(&g, &s, session, err);
  dt_session_close(session);
  generation_close(&g);
  return ok;
}
