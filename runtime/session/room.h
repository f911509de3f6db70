/* Checks whether the caches of a session fit in the memory that is free. */
#ifndef DT_SESSION_ROOM_H
#define DT_SESSION_ROOM_H

#include "pair/account.h"
#include "session/session.h"

/* Fails with DT_EINPUT if the caches of all models do not fit; the message says what would fit. */
dt_status caches_fit(const dt_pair *, int sequences, int context, bool use_draft, dt_error *);

#endif
