/* Whether the caches of a session fit the memory that is left. */
#ifndef DT_SESSION_ROOM_H
#define DT_SESSION_ROOM_H

#include "session/session.h"

/* Slots of a sequence in the target's cache: its context, and the largest tree with its root. */
static inline int target_slots(int context) { return context + 1 + DT_TREE_VERIFY; }

/* DT_EINPUT with what would fit, if the caches of all models do not. */
dt_status caches_fit(const dt_pair *, int sequences, int context, bool use_draft, dt_error *);

#endif
