/* The functions that the module dtrun-mpi.so exports. */
#ifndef DT_RANKS_MPI_H
#define DT_RANKS_MPI_H

#include "backend/ranks.h"

#define DT_MPI_JOIN "dt_mpi_join"
typedef dt_ranks *dt_mpi_join_fn(void);

/* Joins the processes that mpirun started, of which this is one. The result belongs to the module. NULL: MPI cannot be
 * initialized. */
__attribute__((visibility("default"))) dt_mpi_join_fn dt_mpi_join;

#endif
