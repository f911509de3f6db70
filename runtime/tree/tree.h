/* The token tree of one iteration as flat arrays. Pure: no backend, no session, no I/O.
 *
 * Node 0 is the root (the last committed token); drafted nodes are 1, 2, .. in order of creation and are never
 * renumbered, so a parent's id is below its children's. All capacity is taken by dt_tree_open; nothing allocates later.
 *
 * Phases: OPEN (grows) -> SEALED (keep has chosen the nodes to verify) -> VERIFIED (verdicts are known) -> FROZEN
 * (committed: readable until the next dt_tree_reset). Functions that grow the tree fail with DT_ESTATE outside OPEN.
 * "No room" is a value, never an error. Functions without a dt_status answer 0, -1 or NULL to a NULL tree and to an
 * unknown node, and change nothing. */
#ifndef DT_TREE_H
#define DT_TREE_H

#include "system/status.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

#define DT_TREE_ENTRIES 4096 /* drafted nodes of one tree */
#define DT_TREE_VERIFY 256   /* drafted nodes of one verify pass */
#define DT_TREE_DRAFTS 512   /* rows drafted from in one iteration */
#define DT_CANDIDATES 32     /* next tokens known after a draft step */
#define DT_DRAFTS 2          /* drafts that a pair has, at most: 0 is the first */

typedef enum { TREE_OPEN, TREE_SEALED, TREE_VERIFIED, TREE_FROZEN } dt_tree_phase;

/* A draft's result after one node. */
typedef struct {
  int count;                    /* candidates; 0 when the node could not be drafted from (the draft's context ended) */
  int32_t token[DT_CANDIDATES]; /* by falling probability; all numbers here are over the shared token ids */
  /* Log-probability in the softmax of the logits at temperature 1; of a coupled draft (dtrun.h) in the softmax of the
   * scores, logit / temp + noise (sample.h). */
  float logp[DT_CANDIDATES];
  float own[DT_CANDIDATES]; /* log-probability in the softmax of the logits at temperature 1, without noise */
  float confidence;         /* the largest next-token probability; it and the entropy belong to logp's softmax */
  float entropy;            /* nats */
} dt_tree_draft;

/* How the draft's probabilities are calibrated: see dt_tree_calibrate. {1, 0, 1, 0, 1} leaves them as they are. */
typedef struct {
  double scale, lean, slope, shift, share;
} dt_tree_calibration;

typedef struct dt_tree {
  dt_tree_phase phase;
  int nodes;     /* root included */
  int limit;     /* most drafted nodes (default DT_TREE_VERIFY) */
  int max_depth; /* a node may have a depth of at most this */
  int deepest;   /* depth of the deepest node */
  int vocab;     /* tokens are 0..vocab-1 */
  dt_tree_calibration calibration;
  /* per node, [1 + DT_TREE_ENTRIES] */
  int32_t *token, *parent, *depth;                  /* the root's parent is -1 */
  int32_t *first_child, *last_child, *next_sibling; /* -1: none */
  float *logp, *own;         /* log-probability under the draft model given the parent's path, as in dt_tree_draft */
  double *cumlogp;           /* summed along the path; the root's is 0 */
  int16_t *draft[DT_DRAFTS]; /* of each draft: index into drafts, -1: no draft step yet */
  uint8_t *by;               /* the draft whose result counts as the node's */
  int8_t *verdict;           /* 1 accepted, 0 rejected, -1 unknown (not verified, or its parent not accepted) */
  uint8_t *kept;             /* verified; the root always */
  dt_tree_draft *drafts;     /* [DT_TREE_DRAFTS + 1] per node and draft that read it; the last one has no candidates */
  int n_drafts;
  /* the kept drafted nodes, ascending; valid from SEALED on */
  int32_t *kept_node; /* [DT_TREE_VERIFY] */
  int n_kept;
  int32_t *scratch; /* [2 * (1 + DT_TREE_ENTRIES)] for dt_tree_keep_best, dt_tree_branch_best */
} dt_tree;

dt_status dt_tree_open(dt_tree **out, dt_error *err);
void dt_tree_close(dt_tree *t); /* NULL is allowed */

/* An empty tree over `root`. max_depth and vocab below 0 are 0: such a tree takes no nodes. */
void dt_tree_reset(dt_tree *t, int32_t root, int max_depth, int vocab);

int dt_tree_size(const dt_tree *t);       /* drafted nodes */
int dt_tree_room(const dt_tree *t);       /* nodes that may still be added */
int dt_tree_depth_room(const dt_tree *t); /* levels that may still be added below the deepest node */

/* Most drafted nodes of this iteration: 1..DT_TREE_ENTRIES, not below the present size. */
dt_status dt_tree_limit(dt_tree *t, int limit, dt_error *err);

/* Calibrates this iteration's later draft results, which reorders candidates and changes probabilities, in two steps:
 *   1. A candidate's score becomes score + lean * own (dt_tree_draft); probabilities are the softmax of scores / scale.
 *      Each id that is no candidate counts as a tenth as likely as the last candidate.
 *   2. The first candidate's log-odds, log(p / (1 - p)), become slope * log-odds + shift; it stays the likeliest. The
 *      other candidates get `share` of the remaining probability, in their old proportions.
 * `own` does not change. scale and slope are 0.1..10, lean -1..1, shift -10..10, share 0.01..1. */
dt_status dt_tree_calibrate(dt_tree *t, dt_tree_calibration calibration, dt_error *err);
void dt_tree_calibrate_draft(const dt_tree *t, dt_tree_draft *d); /* applies it to one new draft result */

/* Calibrates the draft's probabilities: learns four numbers of dt_tree_calibrate while text is generated.
 *   lean          -0.5..0.5  weight of the draft's own log-probability next to the noise; maximizes the likelihood of
 *                 next tokens
 *   slope, shift  0.1..3, -6..6  make the likeliest guess right as often as its probability says
 *   share         0.05..1    the part of the rest that belongs to the other candidates; learned only if asked for,
 *                 since the thresholds of policies were chosen without it */
typedef struct {
  double lean, slope, shift, share;
  double leans, slopes, shifts;              /* evidence for each so far: steps get smaller */
  double came, shares;                       /* share = came / shares; shares 0: it is not learned */
  double said_slope, said_shift, said_share; /* the numbers in force when this iteration's guesses were made */
} dt_tree_learner;

dt_tree_learner dt_tree_learner_new(bool share);

/* What a learner knows as numbers, and a learner that goes on from them, with less evidence, so that it still follows a
 * new text. Numbers out of range are replaced by those of a new learner. */
#define DT_TREE_LEARNER_STATE 9
void dt_tree_learner_state(const dt_tree_learner *l, double state[DT_TREE_LEARNER_STATE]);
dt_tree_learner dt_tree_learner_resume(bool share, const double state[DT_TREE_LEARNER_STATE]);

/* Calibrates the tree with the learned numbers, before its first draft result. coupled: the draft uses the target's
 * noise. */
dt_status dt_tree_calibrate_learned(dt_tree_learner *l, dt_tree *t, bool coupled, dt_error *err);

/* Learns that `token` came after node u. A node without candidates teaches nothing. */
void dt_tree_learn(dt_tree_learner *l, const dt_tree *t, int u, int32_t token, bool coupled);

/* Adds the child `token` of u with its log-probability (at most 0). *v: the id of the new child, or of the child that
 * has that token already; -1: no room. */
dt_status dt_tree_add(dt_tree *t, int u, int32_t token, float logp, int *v, dt_error *err);

/* Adds the first b candidates of u that are not its children yet, in their order, while there is room, as nodes
 * *first..*last. If none is added, *last = *first - 1. u must have a draft result. */
dt_status dt_tree_branch(dt_tree *t, int u, int b, int *first, int *last, dt_error *err);

/* The same for n nodes together: adds the k candidates whose paths are the likeliest, the likeliest first. In a tie the
 * node that is first in ids wins. */
dt_status dt_tree_branch_best(dt_tree *t, const int32_t *ids, int n, int k, int *first, int *last, dt_error *err);

/* The k best of nodes first..last by cumulative log-probability, falling, ties by lower id, into out (room for
 * last - first + 1). Returns how many: min(k, last - first + 1), at least 0; 0 if first or last is no node. */
int dt_tree_best(const dt_tree *t, int k, int first, int last, int32_t *out);

/* Seals the tree: verify only these nodes. The list (0 is ignored, duplicates too) must be closed under parents and
 * hold at most DT_TREE_VERIFY drafted nodes. DT_ESTATE names the first offending node; the tree stays open then. */
dt_status dt_tree_keep(dt_tree *t, const int32_t *ids, int n, dt_error *err);

/* Seals with the k best nodes, k in 0..DT_TREE_VERIFY: closed, since a child is never better than its parent. */
dt_status dt_tree_keep_best(dt_tree *t, int k, dt_error *err);

/* Seals with every node; DT_ESTATE when there are more than DT_TREE_VERIFY. Nothing to do on a sealed tree. */
dt_status dt_tree_seal(dt_tree *t, dt_error *err);
dt_status dt_tree_check_seal(const dt_tree *t, dt_error *err); /* fails as dt_tree_seal would */

/* A new result of that draft for u, to be filled in; NULL: u has one already, or all DT_TREE_DRAFTS are used, and u now
 * has one without candidates. It counts as the node's if u had none of another draft. */
dt_tree_draft *dt_tree_new_draft(dt_tree *t, int u, int draft);

int dt_tree_draft_room(const dt_tree *t); /* nodes that may still be drafted from in this iteration */

/* Gives u a result of that draft without candidates, unless it has one: the draft cannot continue from it. */
void dt_tree_no_draft(dt_tree *t, int u, int draft);

/* Lets that draft's result count as the node's; false: it has none. What was added to the tree stays. */
bool dt_tree_use_draft(dt_tree *t, int u, int draft);

/* The draft result that counts as the node's, or NULL. */
const dt_tree_draft *dt_tree_draft_of(const dt_tree *t, int u);

/* The child of u that carries token, or -1. */
int dt_tree_child(const dt_tree *t, int u, int32_t token);

/* The row of u, a kept node or the root (row 0), in the verify pass; -1: u is not kept, or the tree is not sealed. */
int dt_tree_row(const dt_tree *t, int u);

/* Fails with DT_ESTATE unless the tree may still change. */
dt_status dt_tree_check_open(const dt_tree *t, dt_error *err);

/* Fails with DT_ESTATE unless u is a node. `what` names the argument in the message. */
dt_status dt_tree_check(const dt_tree *t, int u, const char *what, dt_error *err);

#pragma GCC visibility pop

#endif
