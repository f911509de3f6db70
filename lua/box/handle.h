/* The policy's `tree` and `seq` are handles of a run. A handle loses its run when the sequence ends. */
#ifndef DTL_HANDLE_H
#define DTL_HANDLE_H

#include "box/run.h"

/* The content of a run's userdata. `kind` is one of the addresses below, which no other userdata begins with. */
typedef struct run_handle {
  const char *kind;
  dtl_run *run; /* NULL: its sequence has ended */
} run_handle;

extern const char handle_tree[], handle_seq[];

/* Pushes a new handle with n_values user values. Raises. */
run_handle *handle_push(lua_State *L, const char *kind, dtl_run *run, int n_values);

/* The run of the handle at index 1. Raises if that is not a handle of this kind, or if its sequence has ended. */
dtl_run *handle_run(lua_State *L, const char *kind, const char *who);

/* The same for argument i of a method of another object. */
dtl_run *handle_run_at(lua_State *L, int i, const char *kind, const char *who);

/* Detaches the run from its objects, whose methods raise from then on. */
void handle_detach(dtl_run *run);

#endif
