/* Ranks: one target on several processes, perhaps on several machines. */
#ifndef DT_DTRUN_RANKS_H
#define DT_DTRUN_RANKS_H

#include "dtrun.h"

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

#define DT_RANKS 16             /* most of them */
#define DT_RANKS_PATIENCE 86400 /* most seconds to wait for them */

/* MPI waits for all programs of an mpirun, and for ever for one that does not join. This is called once they have taken
 * `seconds` (20, or as DTRUN_JOIN_SECONDS in the environment says), on a thread of its own, while the caller of
 * dt_ranks_join is within MPI. It ends the process (_exit), or returns, and they are waited for on. */
typedef void (*dt_ranks_late)(int ranks, int seconds);

/* To be called first: joins what `mpirun -n R` started (Open MPI). Rank 0 goes on, and from then on every pair on the CPU shares its
 * target out among the ranks, in this process's memory only a part; its tokens stay what they are. Any other rank returns when
 * rank 0's program has ended, and has nothing left to do. Without mpirun this does nothing: *rank is 0 of 1.
 * late: NULL waits without a limit.
 * DT_EINPUT, on rank 0 only: this build has no MPI, they are too many, or DTRUN_JOIN_SECONDS is no number. */
dt_status dt_ranks_join(int *rank, int *ranks, dt_ranks_late late, dt_error *err);

bool dt_ranks_possible(void); /* whether MPI is there to be joined */

/* Memory of one rank, in bytes; resident: of the whole process. kernels: "cpu:avx2"; ranks may differ in them. */
typedef struct {
  char host[64], kernels[24];
  size_t weights, caches, scratch, resident;
} dt_rank_info;

/* Of all ranks that share the pair's target, info[DT_RANKS]; returns how many they are, 0: it is whole here, or there is no pair. */
int dt_pair_ranks(const dt_pair *pair, dt_rank_info *info);

#pragma GCC visibility pop

#endif
