/* The policy's `tree` (tree_object.c), and the drafting functions that `seq` and `batch` share with it. */
#ifndef DTL_BOX_TREE_OBJECT_H
#define DTL_BOX_TREE_OBJECT_H

#include "box/run.h"

/* Pushes the tree of a run and stores its handle in the run. box_seq_push sets its field seq. Raises. */
void box_tree_push(lua_State *L, dtl_run *run);

/* The method tree:draft_step or seq:draft_step, with the nodes at index 2, their number at 3, and {model =, width =}
 * last. */
int box_tree_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Checks that the run may draft now as `how` says, and puts the nodes at index i into its refs: one node, or the first
 * ones of a list. The number at n_index says how many of the list (nil: all). */
void box_tree_read_refs(lua_State *L, dtl_run *run, int i, int n_index, dt_node_ref how, const char *who);

/* Removes a table {model = 1 or 2, width = n} from the stack if one is on top, at index `least` or above. Returns the
 * draft that it names and the width; both are 0 if they are not named. */
dt_node_ref box_tree_take_draft(lua_State *L, int least, const char *who);

/* Removes nodes from the run's refs that their draft model has processed already, and uses those results again. If none
 * is left, no pass is needed. */
void box_tree_drop_drafted(dtl_run *run);

#endif
