/* Joining the ranks that mpirun has started, and the backend that is all of them. */
#ifndef DT_RANKS_JOIN_H
#define DT_RANKS_JOIN_H

#include "backend/backend.h"
#include "dtrun_ranks.h"

/* Of rank 0 of several: the CPU backend over all of them. NULL: this process is alone. */
const dt_backend_ops *ranks_backend(void);

/* The memory that each rank of such a backend holds, all[DT_RANKS]; returns the number of ranks. */
int ranks_info(const dt_backend *, dt_rank_info *all);

#endif
