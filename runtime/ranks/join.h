/* Joins the ranks that mpirun has started, and provides the backend that consists of all of them. */
#ifndef DT_RANKS_JOIN_H
#define DT_RANKS_JOIN_H

#include "backend/backend.h"
#include "dtrun_ranks.h"

/* Returns, on rank 0 of several, the CPU backend over all ranks. NULL: this process is alone. */
const dt_backend_ops *ranks_backend(void);

/* Writes the memory use of each rank of such a backend to all[DT_RANKS], and returns the number of ranks. */
int ranks_info(const dt_backend *, dt_rank_info *all);

#endif
