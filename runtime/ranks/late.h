/* A time limit for MPI, which cannot be interrupted: it begins when all programs of an mpirun have joined, and waits
 * for ever if one does not. */
#ifndef DT_LATE_H
#define DT_LATE_H

#include "dtrun_ranks.h"

#include <pthread.h>

typedef struct {
  dt_ranks_late call;
  int ranks, seconds; /* for it */
  int wait;           /* seconds until it is called */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool ended;
} late_watch;

/* The first four are set. From now on a thread waits, and then makes the call, unless late_end comes first.
 * No thread: DT_EDEVICE. */
dt_status late_begin(late_watch *, dt_error *err);
void late_end(late_watch *);

#endif
