/* The threads of a backend. A team runs a function on all its members at once, with barriers between the phases of the
 * function. A waiting member spins for 50 microseconds, the usual imbalance of a phase, and then sleeps, so that it
 * does not take a processor from a member for which it waits. */
#ifndef DT_CPU_TEAM_H
#define DT_CPU_TEAM_H

#include "system/status.h"

typedef struct cpu_team cpu_team;

/* One of the threads that run a function. */
typedef struct {
  cpu_team *team;
  int thread, threads;
} cpu_member;

/* Opens a team of `threads` members, one of which is the caller's thread. DT_EDEVICE: the system does not allow that
 * many threads. */
dt_status cpu_team_open(int threads, cpu_team **out, dt_error *err);
void cpu_team_close(cpu_team *team); /* does nothing if team is NULL */

/* Runs body on the team, with the caller as thread 0, and returns when all members have ended. If other processes use
 * our processors, so that members wait for more than a third of the time, it uses fewer threads for a while. */
void cpu_team_run(cpu_team *team, void (*body)(const cpu_member *, void *), void *context);

/* A barrier: waits until all members that run the function have arrived. */
void cpu_wait(const cpu_member *member);
/* The same barrier, for use while thread 0 waits for other machines. The time spent in it does not count as waiting,
 * since it says nothing about our processors. */
void cpu_wait_for_ranks(const cpu_member *member);

/* Computes this thread's share [*first, *last) of `count` items. */
static inline void cpu_share(const cpu_member *member, int count, int *first, int *last) {
  *first = (int)((long long)count * member->thread / member->threads);
  *last = (int)((long long)count * (member->thread + 1) / member->threads);
}

#endif
