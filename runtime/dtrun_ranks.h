/* Ranks: one target on several processes, on one or several machines. */
#ifndef DT_DTRUN_RANKS_H
#define DT_DTRUN_RANKS_H

#include "dtrun.h"

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

#define DT_RANKS 16             /* maximum number of ranks */
#define DT_RANKS_PATIENCE 86400 /* maximum number of seconds to wait for them */

/* MPI waits for all processes of an mpirun, for ever if one does not join. After `seconds` (20, or the environment
 * variable DTRUN_JOIN_SECONDS) this function is called on a separate thread, while dt_ranks_join is still in MPI. It
 * either ends the process (_exit), or returns, and the wait continues. */
typedef void (*dt_ranks_late)(int ranks, int seconds);

/* Joins the processes of `mpirun -n R` (Open MPI). Call it before everything else. On rank 0 it returns at once; pairs
 * that are opened later on the CPU divide their target among the ranks, and give the same tokens. On any other rank it
 * returns when rank 0's program has ended, and nothing is left to do. Without mpirun it does nothing: *rank is 0 and
 * *ranks is 1. late: NULL waits without a limit. DT_EINPUT, on rank 0 only: this build has no MPI, there are too many
 * ranks, or DTRUN_JOIN_SECONDS is not a number. */
dt_status dt_ranks_join(int *rank, int *ranks, dt_ranks_late late, dt_error *err);

bool dt_ranks_possible(void); /* whether this build has MPI */

/* The memory of one rank in bytes; resident: that of the whole process. kernels: such as "cpu:avx2"; they may differ
 * between ranks. */
typedef struct {
  char host[64], kernels[24];
  size_t weights, caches, scratch, resident;
} dt_rank_info;

/* Describes all ranks that share the pair's target in info[DT_RANKS], and returns their number. 0: this process has the
 * whole target, or pair is NULL. */
int dt_pair_ranks(const dt_pair *pair, dt_rank_info *info);

#pragma GCC visibility pop

#endif
