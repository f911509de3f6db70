/* The accepted path of a verified tree. Pure; no policy can influence it. */
#ifndef DT_ACCEPT_H
#define DT_ACCEPT_H

#include "tree/tree.h"

/* Walks from the root to the kept child that has the target's token after its parent, as long as there is one. `choice`
 * is the target's token after each verified row, its likeliest or a sampled one (sample.h): choice[0] after the root,
 * choice[i + 1] after kept_node[i]. Writes the accepted nodes to path (room for n_kept), sets the tree's verdicts and
 * returns their number. *bonus is the target's token after the last of them. If the target has none there (-1: a NaN),
 * the last node is taken back and its token becomes the bonus, since plain decoding would commit it. If that happens at
 * the root, the bonus is -1 and the tree stays sealed. */
int accept_path(dt_tree *t, const int32_t *choice, int32_t *path, int32_t *bonus);

#endif
