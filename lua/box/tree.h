/* The policy's `tree` (tree.c), and drafting, which `seq` and `batch` do as well. */
#ifndef DTL_BOX_TREE_H
#define DTL_BOX_TREE_H

#include "box/run.h"

/* Pushes tree and makes its handle the run's; its field seq is set by box_seq_push. Raises. */
void box_tree_push(lua_State *L, dtl_run *run);

/* tree:draft_step and seq:draft_step: nodes at index 2, their number at 3. */
int box_tree_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Puts the nodes at index i, a list (of which as many as the number at index n_index says, nil: all) or one node, into the
 * run's refs, after checking that it may draft now. */
void box_tree_read_refs(lua_State *L, dtl_run *run, int i, int n_index, const char *who);

/* Leaves out of the run's refs what has been drafted from: no pass, and no waiting for one, without something to do. */
void box_tree_drop_drafted(dtl_run *run);

#endif
