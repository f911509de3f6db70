/* Checks whether a model fits in the memory of its device before its weights are read. */
#ifndef DT_PAIR_ACCOUNT_H
#define DT_PAIR_ACCOUNT_H

#include "pair/pair.h"

/* The number of slots of a sequence in the target's cache: its context, and the largest tree with its root. */
static inline int target_slots(int context) { return context + 1 + DT_TREE_VERIFY; }

/* The same for a draft's cache: its context, and the largest tree that it drafts. */
static inline int draft_slots(int context) { return context + DT_TREE_DRAFTS; }

/* Fails with DT_ENOMEM, in a line that says what would fit, if the model and a session of one sequence of `context`
 * positions (0: DT_CONTEXT) need more memory than is free. If the pair's target is loaded, the model is its draft, and
 * the session also has a cache for the target. */
dt_status account_fits(const dt_pair *, const dt_model_desc *, const char *path, int context, dt_error *);

/* Returns the bytes that a draft and its part of such a session need; 0: the backend cannot say, or does not compute
 * the model. */
size_t account_draft(const dt_pair *, const dt_model_desc *, int context);

/* For a pair on the backend that splits its target: puts the largest number of the target's last layers on GPUs that
 * fits there with the pair's draft; at least one, which then may not fit. */
void account_choose_layers(dt_pair *, const dt_model_desc *target, int context);

#endif
