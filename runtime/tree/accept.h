/* Finds the accepted path of a verified tree. A pure function, so no policy can influence it. */
#ifndef DT_ACCEPT_H
#define DT_ACCEPT_H

#include "tree/tree.h"

/* Walks down from the root, each time to the kept child whose token is the target's token after its parent, as long as
 * there is such a child. Writes the accepted nodes to `path` (room for n_kept), sets the tree's verdicts and returns
 * the number of accepted nodes. `choice` is the target's token after each verified row, its likeliest or a sampled one
 * (sample.h): choice[0] after the root, choice[i + 1] after kept_node[i]. *bonus is the target's token after the last
 * accepted node. If that is missing (-1: the row has a NaN), the last node is not accepted and its token becomes the
 * bonus, since plain decoding would commit it. If the target's token after the root is missing, the bonus is -1 and the
 * tree stays sealed. */
int accept_path(dt_tree *t, const int32_t *choice, int32_t *path, int32_t *bonus);

#endif
