/* Guesses that depend on the distance from the root only, as those of Medusa and block heads do: a list of candidates
 * for each depth of the tree, which serves until the tree is committed. */
#ifndef DT_DRAFT_DISTANCES_H
#define DT_DRAFT_DISTANCES_H

#include "draft/draft.h"
#include "draft/results.h"

typedef struct {
  bool known[DT_DISTANCES];
  dt_tree_draft at[DT_DISTANCES]; /* after a node of depth d: at[d] */
} distances;

void distances_forget(distances *d);

/* Adds the row of a distance to a request. A grammar bans ids at distance 0 only, since the text in between is not
 * known at others. */
void distances_want(draft_results *r, dt_out *out, const draft_text *text, int distance);

/* Begins the result of a node of the text's tree; NULL: it has one already, its depth has no list, or there is no
 * room. */
dt_tree_draft *distances_begin(const distances *d, const draft_text *text, int node);

/* Gives a node of the text's tree the list of its depth, without the ids that are forbidden there. */
void distances_take(const distances *d, const draft_text *text, int node);

#endif
