/* Ranks over MPI. This is a separate module (dtrun-mpi.so), which join.c loads only when mpirun started us, so that the
 * program does not need an MPI library otherwise. */
#include "ranks/mpi.h"

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { MICROSECOND = 1000, MILLISECOND = 1000 * MICROSECOND };
enum {
  PATIENCE = 2 * MILLISECOND, /* a rank polls this long for the next message before it naps */
  LONGEST_NAP = 2 * MILLISECOND
};

static void gather(dt_ranks *ranks, void *data, const int *bytes, const int *offset) {
  (void)ranks;
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, bytes, offset, MPI_BYTE, MPI_COMM_WORLD);
}

static void tell(dt_ranks *ranks, const void *message, size_t bytes) {
  for (int i = 1; i < ranks->count; i++) MPI_Send(message, (int)bytes, MPI_BYTE, i, 0, MPI_COMM_WORLD);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 * MILLISECOND + t.tv_nsec;
}

/* MPI itself would keep a processor busy while rank 0 drafts or its user thinks. Naps are a twentieth of the time
 * waited already, and so delay a pass by a twentieth at most. */
static void *listen(dt_ranks *ranks, size_t *bytes) {
  (void)ranks;
  MPI_Message message;
  MPI_Status status;
  int there = 0, n;
  for (int64_t start = now(), waited;;) {
    MPI_Improbe(0, 0, MPI_COMM_WORLD, &there, &message, &status);
    if (there) break;
    if ((waited = now() - start) < PATIENCE) {
      sched_yield();
    } else {
      int64_t nap = waited / 20 < LONGEST_NAP ? waited / 20 : LONGEST_NAP;
      nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
    }
  }
  MPI_Get_count(&status, MPI_BYTE, &n);
  void *received = malloc((size_t)n + 1);
  if (received) MPI_Mrecv(received, n, MPI_BYTE, &message, &status);
  *bytes = (size_t)n;
  return received;
}

static void leave(dt_ranks *ranks) {
  (void)ranks;
  MPI_Finalize();
}

static dt_ranks world = {.gather = gather, .tell = tell, .listen = listen, .leave = leave};

dt_ranks *dt_mpi_join(void) {
  int given;
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); /* a rank that waits in a pass yields its processor */
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given)) return NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.count);
  return &world;
}
