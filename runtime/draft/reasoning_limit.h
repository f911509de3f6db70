/* Limits the tokens of an answer's reasoning (dt_reasoning_limit): says which ids are forced after a text, and after
 * each path of guesses that follows it. What is forced depends only on the generated text and the path. */
#ifndef DT_REASONING_LIMIT_H
#define DT_REASONING_LIMIT_H

#include "dtrun.h"
#include "tree/tree.h"

typedef struct reasoning_limit reasoning_limit;

bool reasoning_limit_wanted(const dt_reasoning_limit *asked);

/* Checks everything that can be checked without a tokenizer. DT_EINPUT: a value is out of range, or a mark is empty. */
dt_status reasoning_limit_check(const dt_reasoning_limit *asked, dt_error *err);

/* Opens the limit of a text in which nothing was generated yet. The pair must outlive it. yields: another token than
 * the forced one ends the limit's effect; otherwise no token may follow it. DT_EINPUT: the end mark cannot be encoded.
 */
dt_status reasoning_limit_open(const dt_pair *pair, const dt_reasoning_limit *asked, bool yields, reasoning_limit **out,
                               dt_error *err);
void reasoning_limit_close(reasoning_limit *l); /* NULL is allowed */

/* Adds a generated token to the text, and begins an empty tree over it. */
void reasoning_limit_token(reasoning_limit *l, int32_t token);
/* Begins an empty tree over the text's last token. */
void reasoning_limit_begin_tree(reasoning_limit *l);

/* The following calls are about a node of the tree that has grown since it began. The state after each node is computed
 * once, from the state after its parent. */

/* Returns whether the token may follow the node. After a token that may not follow, no other may. */
bool reasoning_limit_allow(reasoning_limit *l, const dt_tree *t, int node, int32_t token);
/* Returns the id that is forced after the node, and sets *left to the bytes of the ids that are forced after it; -1:
 * all ids, or none, may follow. */
int32_t reasoning_limit_forced(reasoning_limit *l, const dt_tree *t, int node, int *left);
/* Returns which ids may follow the node, as dt_row_adjustments.allowed; NULL: all of them. */
const uint64_t *reasoning_limit_mask(reasoning_limit *l, const dt_tree *t, int node);

#endif
