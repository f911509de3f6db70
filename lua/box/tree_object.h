/* The policy's `tree` (tree_object.c), and drafting, which `seq` and `batch` do as well. */
#ifndef DTL_BOX_TREE_OBJECT_H
#define DTL_BOX_TREE_OBJECT_H

#include "box/run.h"

/* Pushes tree and makes its handle the run's; its field seq is set by box_seq_push. Raises. */
void box_tree_push(lua_State *L, dtl_run *run);

/* tree:draft_step and seq:draft_step: nodes at index 2, their number at 3, {model =} last. */
int box_tree_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Checks that the run may draft now, and puts the nodes at index i into its refs: one node, or a list, of which the
 * first ones count, as many as the number at n_index (nil: all). That draft is to read them. */
void box_tree_read_refs(lua_State *L, dtl_run *run, int i, int n_index, int draft, const char *who);

/* Takes a table {model = 1 or 2} off the stack, if one is on top, at index `least` or above: the draft that it names, 0
 * without it. */
int box_tree_take_draft(lua_State *L, int least, const char *who);

/* Removes nodes from the run's refs that their draft has read: its result counts as theirs. If none is left, no pass is
 * needed. */
void box_tree_drop_drafted(dtl_run *run);

#endif
