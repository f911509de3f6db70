/* Ranks that are threads of one process, for tests of what ranks compute. */
#ifndef THREAD_RANKS_H
#define THREAD_RANKS_H

#include "backend/ranks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8 };

typedef struct {
  pthread_barrier_t barrier;
  char *data[MOST_RANKS];
} thread_world;

typedef struct {
  dt_ranks ranks; /* must be first, since callees see only this member */
  thread_world *world;
  void (*body)(dt_ranks *, void *);
  void *context;
} thread_rank;

static void thread_gather(dt_ranks *ranks, void *data, const int *bytes, const int *offset) {
  thread_world *world = ((thread_rank *)(void *)ranks)->world;
  world->data[ranks->rank] = data;
  pthread_barrier_wait(&world->barrier);
  for (int i = 0; i < ranks->count; i++)
    if (i != ranks->rank && bytes[i]) memcpy((char *)data + offset[i], world->data[i] + offset[i], (size_t)bytes[i]);
  pthread_barrier_wait(&world->barrier);
}

static void *thread_rank_runs(void *context) {
  thread_rank *me = context;
  me->body(&me->ranks, me->context);
  return NULL;
}

/* Runs body on `count` ranks; rank 0 runs in this thread. */
static inline void run_ranks(int count, void (*body)(dt_ranks *, void *), void *context) {
  thread_world world = {.data = {NULL}};
  thread_rank rank[MOST_RANKS];
  pthread_t id[MOST_RANKS];
  pthread_barrier_init(&world.barrier, NULL, (unsigned)count);
  for (int i = 0; i < count; i++) {
    rank[i] = (thread_rank){{.rank = i, .count = count, .gather = thread_gather}, &world, body, context};
    if (i && pthread_create(&id[i], NULL, thread_rank_runs, &rank[i])) perror("a rank"), abort();
  }
  thread_rank_runs(&rank[0]);
  for (int i = 1; i < count; i++) pthread_join(id[i], NULL);
  pthread_barrier_destroy(&world.barrier);
}

#endif
