/* A long list of candidates for a distance, from which the list of each node is made when a head's guesses depend on
 * the token before them: see pair/successors.h. */
#ifndef DT_DRAFT_CANDIDATES_H
#define DT_DRAFT_CANDIDATES_H

#include "draft/draft.h"
#include "draft/results.h"
#include "pair/successors.h"

typedef struct {
  int n;
  int32_t id[DT_LISTED]; /* by falling logp; these are as in dt_out: */
  float logp[DT_LISTED], own[DT_LISTED];
  float entropy;
} candidates;

/* Copies result i of a pass. */
void candidates_read(const draft_results *r, int i, candidates *to);

/* Makes the list of a node of the text's tree: adds to each candidate what the node's token says about it, and
 * normalizes. Ids that are no candidates keep their weight or, if the head lists few, have none. Ids that are forbidden
 * after the node are left out, and the best DT_CANDIDATES remain. gate: the factors of the distance, or NULL.
 * temperature: of the scores that were ranked; 0: logits were. room: [rank] numbers. */
void candidates_follow(const candidates *c, const successors *s, const float *gate, const draft_text *text, int node,
                       int32_t token, float temperature, float *room, dt_tree_draft *to);

#endif
