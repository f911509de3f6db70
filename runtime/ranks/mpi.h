/* The functions that the module dtrun-mpi.so exports. */
#ifndef DT_RANKS_MPI_H
#define DT_RANKS_MPI_H

#include "backend/ranks.h"

#define DT_MPI_JOIN "dt_mpi_join"
typedef dt_ranks *dt_mpi_join_fn(void);

/* The processes that mpirun started, of which this is one; the module's own. NULL: MPI does not begin. */
__attribute__((visibility("default"))) dt_mpi_join_fn dt_mpi_join;

#endif
