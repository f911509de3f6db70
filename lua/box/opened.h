/* An opened policy: its object, in a box of its own. */
#ifndef DTL_OPENED_H
#define DTL_OPENED_H

#include "box/policy.h"

/* Permanent slots of the main thread's stack. */
enum { OPENED_OBJECT = 1, OPENED_HOST, OPENED_SEQ, OPENED_COSTS, OPENED_MEMORY, OPENED_CORPUS };

typedef struct {
  dtl_box box;
  const dtl_policy *policy;
  uint64_t seed; /* of math.random */
} opened;

/* Makes the object with the policy's parameters. *o must not move afterwards; the policy must outlive it. The policy's
 * print writes nothing meanwhile, since its output appeared when the policy was opened. A failure leaves nothing to
 * close. */
dt_status opened_open(opened *o, const dtl_policy *policy, uint64_t seed, dt_error *err);
void opened_close(opened *o); /* zeros are allowed */

/* The two steps of opened_open, for dtl_policy_open. The first runs the file and leaves its value on the box's co; the
 * second makes the object and leaves it there with its description. reads: collects the texts of required modules;
 * NULL: take them from the policy, and print nothing. After a failure call opened_close. */
dt_status opened_run_file(opened *o, const dtl_policy *policy, uint64_t seed, const volatile sig_atomic_t *interrupt,
                          box_modules *reads, dt_error *err);
dt_status opened_make_object(opened *o, dt_error *err);

/* Pushes the host's function `name` and the file's value onto L, the main thread; the value stays on co. Raises. */
void opened_push_call(lua_State *L, lua_State *co, const char *name);

#endif
