/* The policy's `batch` (scope "batch"): the trees of all sequences that it serves at the moment. */
#ifndef DTL_BOX_BATCH_OBJECT_H
#define DTL_BOX_BATCH_OBJECT_H

#include "box/run.h"

typedef struct {
  dtl_run *run[DTL_SLOTS];
  int n;
} run_group;

/* Pushes the batch of a group, which must outlive the calls into the policy. Raises. */
void box_batch_push(lua_State *L, run_group *group);

/* Adds the tree and the sequence of the group's last run to the batch at index `batch`. Raises. */
void box_batch_add(lua_State *L, int batch, const run_group *group);

/* Removes the tree and the sequence of run i (from 0) and closes the gap. Does not raise. */
void box_batch_remove(lua_State *L, int batch, const run_group *group, int i);

#endif
