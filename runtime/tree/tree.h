/* The token tree of one iteration, as flat arrays. It uses no backend, no session and no I/O.
 *
 * Node 0 is the root (the last committed token); drafted nodes are 1, 2, .. in order of creation and are never
 * renumbered, so a parent's id is lower than those of its children. dt_tree_open allocates all memory; no other call
 * allocates.
 *
 * Phases: OPEN (can grow) -> SEALED (the nodes to verify are chosen) -> VERIFIED (verdicts are known) -> FROZEN
 * (committed; readable until the next dt_tree_reset). Functions that grow the tree fail with DT_ESTATE in other phases
 * than OPEN. Having no room is a return value, never an error. For a NULL tree or an unknown node, functions without a
 * dt_status return 0, -1 or NULL and change nothing. */
#ifndef DT_TREE_H
#define DT_TREE_H

#include "system/status.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

#define DT_TREE_ENTRIES 4096 /* maximum number of drafted nodes of a tree */
#define DT_TREE_VERIFY 256   /* maximum number of drafted nodes in a verify pass */
#define DT_TREE_DRAFTS 512   /* maximum number of draft results in an iteration */
#define DT_CANDIDATES 32     /* number of next tokens in a draft result */

typedef enum { TREE_OPEN, TREE_SEALED, TREE_VERIFIED, TREE_FROZEN } dt_tree_phase;

/* A draft's result after one node. */
typedef struct {
  int count; /* number of candidates; 0: the draft could not continue from the node (its context is full) */
  int32_t token[DT_CANDIDATES]; /* by falling probability, which is over the ids that target and draft share */
  /* Log-probability in the softmax of the logits at temperature 1 or, if the draft is coupled (dtrun.h), in the softmax
   * of the scores logit / temp + noise (sample.h). */
  float logp[DT_CANDIDATES];
  float own[DT_CANDIDATES]; /* log-probability in the softmax of the logits at temperature 1, without noise */
  float confidence;         /* the largest next-token probability; like the entropy, in the softmax of logp */
  float entropy;            /* nats */
} dt_tree_draft;

/* How the draft's probabilities are calibrated: see dt_tree_calibrate. {1, 0, 1, 0, 1} leaves them unchanged. */
typedef struct {
  double scale, lean, slope, shift, share;
} dt_tree_calibration;

typedef struct dt_tree {
  dt_tree_phase phase;
  int nodes;     /* number of nodes, including the root */
  int limit;     /* maximum number of drafted nodes (default DT_TREE_VERIFY) */
  int max_depth; /* maximum depth of a node */
  int deepest;   /* depth of the deepest node */
  int vocab;     /* tokens are 0..vocab-1 */
  dt_tree_calibration calibration;
  /* for each node: [1 + DT_TREE_ENTRIES] */
  int32_t *token, *parent, *depth;                  /* the root's parent is -1 */
  int32_t *first_child, *last_child, *next_sibling; /* -1: none */
  float *logp, *own;     /* log-probability under the draft model given the parent's path, as in dt_tree_draft */
  double *cumlogp;       /* summed along the path; the root's is 0 */
  int16_t *draft;        /* index into drafts, or -1: no draft step yet */
  int8_t *verdict;       /* 1 accepted, 0 rejected, -1 unknown (not verified, or its parent not accepted) */
  uint8_t *kept;         /* whether the node is verified; always true for the root */
  dt_tree_draft *drafts; /* [DT_TREE_DRAFTS + 1] one for each drafted node; the last one has no candidates */
  int n_drafts;
  /* the kept drafted nodes, ascending; valid from SEALED on */
  int32_t *kept_node; /* [DT_TREE_VERIFY] */
  int n_kept;
  int32_t *scratch; /* [2 * (1 + DT_TREE_ENTRIES)] for dt_tree_keep_best, dt_tree_branch_best */
} dt_tree;

dt_status dt_tree_open(dt_tree **out, dt_error *err);
void dt_tree_close(dt_tree *t); /* NULL is allowed */

/* Makes the tree empty, over the token `root`. max_depth and vocab below 0 count as 0: no node can be added then. */
void dt_tree_reset(dt_tree *t, int32_t root, int max_depth, int vocab);

int dt_tree_size(const dt_tree *t);       /* number of drafted nodes */
int dt_tree_room(const dt_tree *t);       /* number of nodes that can still be added */
int dt_tree_depth_room(const dt_tree *t); /* number of levels that can still be added below the deepest node */

/* Sets the maximum number of drafted nodes of this iteration: 1..DT_TREE_ENTRIES, and at least the present size. */
dt_status dt_tree_limit(dt_tree *t, int limit, dt_error *err);

/* Calibrates the draft results that this iteration still gets, which changes probabilities and the order of candidates:
 *   1. A candidate's score becomes score + lean * own (dt_tree_draft); probabilities are the softmax of scores / scale.
 *      Each id that is not a candidate counts as a tenth as likely as the last candidate.
 *   2. The first candidate's log-odds, log(p / (1 - p)), become slope * log-odds + shift; it stays the likeliest. The
 *      other candidates get `share` of the remaining probability, in their old proportions.
 * `own` does not change. Ranges: scale and slope 0.1..10, lean -1..1, shift -10..10, share 0.01..1. */
dt_status dt_tree_calibrate(dt_tree *t, dt_tree_calibration calibration, dt_error *err);
void dt_tree_calibrate_draft(const dt_tree *t, dt_tree_draft *d); /* applies it to one new draft result */

/* Learns four numbers of dt_tree_calibrate while text is generated:
 *   lean          -0.5..0.5  weight of the draft's own log-probability next to the noise; maximizes the likelihood of
 *                 next tokens
 *   slope, shift  0.1..3, -6..6  make the likeliest guess right as often as its probability says
 *   share         0.05..1    the part of the remaining probability that the other candidates get; learned only if asked
 * for, since the thresholds of policies were chosen without it */
typedef struct {
  double lean, slope, shift, share;
  double leans, slopes, shifts;              /* the evidence for each so far, which makes steps smaller */
  double came, shares;                       /* share = came / shares; shares 0: it is not learned */
  double said_slope, said_shift, said_share; /* the numbers with which this iteration's guesses were calibrated */
} dt_tree_learner;

dt_tree_learner dt_tree_learner_new(bool share);

/* dt_tree_learner_state saves what a learner has learned. dt_tree_learner_resume makes a learner that continues from
 * there, with less evidence, so that it still adapts to a new text; numbers out of range are replaced by those of a new
 * learner. */
#define DT_TREE_LEARNER_STATE 9
void dt_tree_learner_state(const dt_tree_learner *l, double state[DT_TREE_LEARNER_STATE]);
dt_tree_learner dt_tree_learner_resume(bool share, const double state[DT_TREE_LEARNER_STATE]);

/* Calibrates the tree with the learned numbers. Call it before the tree's first draft result. coupled: the draft uses
 * the target's noise. */
dt_status dt_tree_calibrate_learned(dt_tree_learner *l, dt_tree *t, bool coupled, dt_error *err);

/* Learns that `token` is the text's token after node u. Nothing is learned from a node without candidates. */
void dt_tree_learn(dt_tree_learner *l, const dt_tree *t, int u, int32_t token, bool coupled);

/* Adds `token` as a child of u, with its log-probability (at most 0). *v is the id of the new child, or of the child
 * that already has this token; -1: no room. */
dt_status dt_tree_add(dt_tree *t, int u, int32_t token, float logp, int *v, dt_error *err);

/* Adds the first b candidates of u that are not its children yet, in order, as nodes *first..*last; fewer if there is
 * no room. If none is added, *last = *first - 1. u must have a draft result. */
dt_status dt_tree_branch(dt_tree *t, int u, int b, int *first, int *last, dt_error *err);

/* The same for n nodes together: adds the k candidates whose paths are the likeliest, in order of falling probability.
 * In a tie the candidate of the node that comes first in `ids` wins. */
dt_status dt_tree_branch_best(dt_tree *t, const int32_t *ids, int n, int k, int *first, int *last, dt_error *err);

/* Writes the k best of the nodes first..last to `out` (room for last - first + 1), by falling cumulative
 * log-probability, ties by lower id. Returns how many: min(k, last - first + 1), or 0 if that is negative or if first
 * or last is not a node. */
int dt_tree_best(const dt_tree *t, int k, int first, int last, int32_t *out);

/* Seals the tree: only these nodes will be verified. The list must contain the parent of each of its nodes, and at most
 * DT_TREE_VERIFY drafted nodes; 0 and duplicates are ignored. DT_ESTATE names the first node that is wrong; the tree
 * then stays open. */
dt_status dt_tree_keep(dt_tree *t, const int32_t *ids, int n, dt_error *err);

/* Seals the tree with the k best nodes, k in 0..DT_TREE_VERIFY. Their parents are among them, since a child is never
 * better than its parent. */
dt_status dt_tree_keep_best(dt_tree *t, int k, dt_error *err);

/* Seals the tree with all nodes. DT_ESTATE: there are more than DT_TREE_VERIFY. Does nothing if the tree is sealed
 * already. */
dt_status dt_tree_seal(dt_tree *t, dt_error *err);
dt_status dt_tree_check_seal(const dt_tree *t, dt_error *err); /* fails as dt_tree_seal would */

/* Returns a new result for u, to be filled in. NULL: u already has one, or all DT_TREE_DRAFTS are in use and u now has
 * one without candidates. */
dt_tree_draft *dt_tree_new_draft(dt_tree *t, int u);

int dt_tree_draft_room(const dt_tree *t); /* number of draft results that this iteration can still get */

/* Gives u a result without candidates, unless it has one already: the draft cannot continue from u. */
void dt_tree_no_draft(dt_tree *t, int u);

/* Returns the node's draft result, or NULL. */
const dt_tree_draft *dt_tree_draft_of(const dt_tree *t, int u);

/* Returns the child of u that has this token, or -1. */
int dt_tree_child(const dt_tree *t, int u, int32_t token);

/* Returns the row of u (a kept node, or the root, which is row 0) in the verify pass; -1: u is not kept, or the tree is
 * not sealed. */
int dt_tree_row(const dt_tree *t, int u);

/* Fails with DT_ESTATE unless the tree is open. */
dt_status dt_tree_check_open(const dt_tree *t, dt_error *err);

/* Fails with DT_ESTATE unless u is a node. `what` names the argument in the message. */
dt_status dt_tree_check(const dt_tree *t, int u, const char *what, dt_error *err);

#pragma GCC visibility pop

#endif
