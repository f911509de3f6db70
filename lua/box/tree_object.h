/* The policy's `tree` (tree_object.c), and the drafting functions that `seq` and `batch` share with it. */
#ifndef DTL_BOX_TREE_OBJECT_H
#define DTL_BOX_TREE_OBJECT_H

#include "box/run.h"

/* Pushes the tree of a run and stores its handle in the run. box_seq_push sets its field seq. Raises. */
void box_tree_push(lua_State *L, dtl_run *run);

/* The method tree:draft_step or seq:draft_step, with the nodes at index 2, their number at 3, and {width =} last. */
int box_tree_draft_step(lua_State *L, dtl_run *run, const char *who);

/* Checks that the run may draft now, and puts the nodes at index i into its refs, with this width: one node, or the
 * first ones of a list. The number at n_index says how many of the list (nil: all). */
void box_tree_read_refs(lua_State *L, dtl_run *run, int i, int n_index, int width, const char *who);

/* Removes a table {width = n} from the stack if one is on top, at index `least` or above. Returns the width, 0 if none
 * is named. */
int box_tree_take_width(lua_State *L, int least, const char *who);

/* Removes nodes from the run's refs that the draft has processed already. If none is left, no pass is needed. */
void box_tree_drop_drafted(dtl_run *run);

#endif
