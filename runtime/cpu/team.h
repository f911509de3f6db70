/* The threads of one pass: one parallel region, and a barrier of our own between its phases. */
#ifndef DT_CPU_TEAM_H
#define DT_CPU_TEAM_H

#include <stdatomic.h>

typedef struct {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_int phase;
  atomic_int asleep; /* threads that gave up spinning */
} cpu_barrier;

/* One thread's place in the team. */
typedef struct {
  cpu_barrier *barrier;
  int thread, threads;
} cpu_member;

/* Runs body on `threads` threads (fewer if the system gives fewer; 1: no region at all). */
void cpu_team_run(int threads, void (*body)(const cpu_member *, void *), void *context);

/* Waits until the whole team is here. */
void cpu_wait(const cpu_member *member);

/* This thread's share [*first, *last) of `count` things. */
static inline void cpu_share(const cpu_member *member, int count, int *first, int *last) {
  *first = (int)((long long)count * member->thread / member->threads);
  *last = (int)((long long)count * (member->thread + 1) / member->threads);
}

#endif
