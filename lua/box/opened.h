/* A policy at work: its object, made from what is written in a box of its own. */
#ifndef DTL_OPENED_H
#define DTL_OPENED_H

#include "box/policy.h"

/* Places on the main thread's stack that stay taken. */
enum { OPENED_OBJECT = 1, OPENED_HOST, OPENED_SEQ, OPENED_COSTS, OPENED_MEMORY, OPENED_CORPUS };

typedef struct {
  dtl_box box;
  const dtl_policy *policy;
  uint64_t seed; /* of math.random */
} opened;

/* The object with the policy's parameters. *o must not move afterwards; the policy must outlive it. Opening prints nothing: it did
 * when the policy was opened. A failure leaves nothing to close. */
dt_status opened_open(opened *o, const dtl_policy *policy, uint64_t seed, dt_error *err);
void opened_close(opened *o); /* zeros are allowed */

/* The two steps of it, for dtl_policy_open. First the file runs, and its value lies on the box's co; then the object is made, and it
 * lies there with its description. reads: gets the texts of the modules that are required; NULL: they are the policy's, and nothing
 * is printed. After a failure opened_close is left to do. */
dt_status opened_run_file(opened *o, const dtl_policy *policy, uint64_t seed, const volatile sig_atomic_t *interrupt,
                          box_modules *reads, dt_error *err);
dt_status opened_make_object(opened *o, dt_error *err);

/* On the main thread: pushes the host's function `name` and the file's value, which stays on co. Raises. */
void opened_push_call(lua_State *L, lua_State *co, const char *name);

#endif
