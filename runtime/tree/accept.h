/* Which path of a verified tree is accepted. Pure; a policy has no say in it. */
#ifndef DT_ACCEPT_H
#define DT_ACCEPT_H

#include "tree/tree.h"

/* From the root, the kept child whose token is the target's at its parent, repeatedly. `choice` is the target's token after
 * each verified row, its likeliest or the one it draws (draw.h): choice[0] after the root, choice[i + 1] after kept_node[i].
 * Writes the accepted nodes to path (room for n_kept), sets the tree's verdicts, returns how many; *bonus is the target's
 * token after the last. Where it has none (-1), the last node itself is taken back and its token the bonus, so that all that
 * plain decoding would commit is committed; after the root there is nothing to take back: the bonus is -1, and the tree
 * stays sealed. */
int accept_path(dt_tree *t, const int32_t *choice, int32_t *path, int32_t *bonus);

#endif
