/* A time limit for starting MPI, which cannot be interrupted: its start ends only when all processes of an mpirun have
 * joined, and waits for ever if one does not. */
#ifndef DT_LATE_H
#define DT_LATE_H

#include "dtrun_ranks.h"

#include <pthread.h>

typedef struct {
  dt_ranks_late call;
  int ranks, seconds; /* arguments of the call */
  int wait;           /* seconds until it is called */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool ended;
} late_watch;

/* Starts a thread that waits `wait` seconds and then makes the call, unless late_end comes first. The caller has set
 * the first four fields. DT_EDEVICE: the thread cannot be started. */
dt_status late_begin(late_watch *, dt_error *err);
void late_end(late_watch *);

#endif
