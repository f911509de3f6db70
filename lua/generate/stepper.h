/* A stepper calls a policy's object, iteration by iteration. With scope "sequence" the object serves one sequence, with
 * scope "batch" any number of sequences, all of them in every step. */
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
  policy_memory *memory; /* NULL: the policy uses none */
  bool looks_up;         /* the policy gets self.corpus: files, or its earlier outputs at least */
  learned_view costs;    /* empty if the request has a table, or nothing learns */
  run_group group;       /* the runs of its members */
  slot *member[DTL_SLOTS];
  int joined;     /* sequences that have joined so far */
  bool has_batch; /* the batch object exists (scope "batch") */
  bool pauses;    /* this iteration is plain and waits for its pass */
  double step_ms; /* policy overhead in this step */
} stepper;

/* Checks that this policy can serve sequences of the pair, and that the request has the memory that it uses. */
dt_status stepper_check(const dtl_policy *policy, const dt_pair *pair, const dtl_request *request, dt_error *err);

/* Makes an object of the policy with this seed, after stepper_check. Call stepper_close after a failure, too. */
dt_status stepper_open(stepper *s, const dtl_policy *policy, uint64_t seed, const dtl_request *request, dt_error *err);
void stepper_close(stepper *s); /* all sequences must have left; zeros are allowed */

/* Adds a sequence that has started; the first one also runs the policy's init. After a failure it is not added. */
dt_status stepper_join(stepper *s, slot *member, dt_error *err);
void stepper_leave(stepper *s, slot *member);

/* Runs one iteration of every member: draft, verify, commit, observe; or a plain one, while all members pause. After
 * DT_OK it is complete or was interrupted or, if stepper_waits, waits for the pass that its run awaits: stepper_resume
 * continues it after that pass. */
dt_status stepper_step(stepper *s, dt_error *err);
dt_status stepper_resume(stepper *s, dt_error *err);
bool stepper_waits(const stepper *s);

#endif
