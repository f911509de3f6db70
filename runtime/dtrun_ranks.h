/* Ranks: one target on several processes, perhaps on several machines. */
#ifndef DT_DTRUN_RANKS_H
#define DT_DTRUN_RANKS_H

#include "dtrun.h"

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

#define DT_RANKS 16             /* most of them */
#define DT_RANKS_PATIENCE 86400 /* most seconds to wait for them */

/* MPI waits for all programs of an mpirun, for ever if one does not join. After `seconds` (20, or DTRUN_JOIN_SECONDS of
 * the environment) this is called on a thread of its own, while dt_ranks_join is still within MPI. It ends the process
 * (_exit), or returns, and the wait continues. */
typedef void (*dt_ranks_late)(int ranks, int seconds);

/* To be called first: joins the processes of `mpirun -n R` (Open MPI). On rank 0 it returns at once; later pairs on the
 * CPU divide their target among the ranks, and give the same tokens. On any other rank it returns when rank 0's program
 * has ended; nothing is left to do there. Without mpirun it does nothing: *rank is 0, *ranks 1. late: NULL waits
 * without a limit. DT_EINPUT, on rank 0 only: this build has no MPI, there are too many ranks, or DTRUN_JOIN_SECONDS is
 * no number. */
dt_status dt_ranks_join(int *rank, int *ranks, dt_ranks_late late, dt_error *err);

bool dt_ranks_possible(void); /* whether this build has MPI */

/* Memory of one rank, in bytes; resident: of the whole process. kernels: "cpu:avx2"; ranks may differ in them. */
typedef struct {
  char host[64], kernels[24];
  size_t weights, caches, scratch, resident;
} dt_rank_info;

/* All ranks that share the pair's target, info[DT_RANKS]; returns their number; 0: this process has it alone, or pair
 * is NULL. */
int dt_pair_ranks(const dt_pair *pair, dt_rank_info *info);

#pragma GCC visibility pop

#endif
