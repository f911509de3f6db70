/* Calls a policy's object, iteration by iteration. With scope "sequence" it serves one sequence, with scope "batch" any
 * number, all in every step. */
#ifndef DTL_STEPPER_H
#define DTL_STEPPER_H

#include "box/batch_object.h"
#include "box/costs_object.h"
#include "box/opened.h"
#include "generate/slot.h"
#include "lookup/memory.h"

typedef struct stepper {
  opened object;
  const dtl_request *request;
  policy_memory *memory; /* NULL: it uses none */
  bool looks_up;         /* it has a corpus, or its earlier outputs at least */
  learned_view costs;    /* unless the request has a table, or nothing learns */
  run_group group;       /* the runs of its members */
  slot *member[DTL_SLOTS];
  int joined;     /* so far */
  bool has_batch; /* the object of scope "batch" is there */
  bool pauses;    /* this iteration is plain and waits for its pass */
  double step_ms; /* the policy's own time in this step */
} stepper;

/* Checks that this policy can serve sequences of the pair, and that the request has the memory and costs it uses. */
dt_status stepper_check(const dtl_policy *policy, const dt_pair *pair, const dtl_request *request, dt_error *err);

/* After that check: makes an object of the policy with this seed. Call stepper_close after a failure too. */
dt_status stepper_open(stepper *s, const dtl_policy *policy, uint64_t seed, const dtl_request *request, dt_error *err);
void stepper_close(stepper *s); /* all sequences must have left; zeros are allowed */

/* A started sequence joins; with the first one the policy's init runs. A failure leaves it outside. */
dt_status stepper_join(stepper *s, slot *member, dt_error *err);
void stepper_leave(stepper *s, slot *member);

/* One iteration of every member: draft, verify, commit, observe; or a plain one, while all members pause. DT_OK: it is
 * over or was interrupted; if stepper_waits, it waits for the pass that its run awaits. */
dt_status stepper_step(stepper *s, dt_error *err);
dt_status stepper_resume(stepper *s, dt_error *err); /* after that pass */
bool stepper_waits(const stepper *s);

#endif
