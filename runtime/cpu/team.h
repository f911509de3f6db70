/* The threads of a backend: a team runs a function on its members at once, with a barrier between the function's phases.
 * Whoever waits spins for some 50 microseconds, which is what a phase's imbalance takes, and then sleeps: a waiting thread
 * must not take a processor from the one that it waits for. */
#ifndef DT_CPU_TEAM_H
#define DT_CPU_TEAM_H

#include "system/status.h"

typedef struct cpu_team cpu_team;

/* One thread's place among those that run a function. */
typedef struct {
  cpu_team *team;
  int thread, threads;
} cpu_member;

/* `threads` of them, the caller's own included. DT_EDEVICE: the system does not give so many. */
dt_status cpu_team_open(int threads, cpu_team **out, dt_error *err);
void cpu_team_close(cpu_team *team); /* NULL is allowed */

/* Runs body on the team, the caller being thread 0, and returns when all have ended. On fewer threads for a while where some
 * wait longer than they work, because other processes have their processors. */
void cpu_team_run(cpu_team *team, void (*body)(const cpu_member *, void *), void *context);

/* Waits until all that run the function are here. */
void cpu_wait(const cpu_member *member);
/* The same, while thread 0 waits for other machines: that says nothing of who has our processors. */
void cpu_wait_for_ranks(const cpu_member *member);

/* This thread's share [*first, *last) of `count` things. */
static inline void cpu_share(const cpu_member *member, int count, int *first, int *last) {
  *first = (int)((long long)count * member->thread / member->threads);
  *last = (int)((long long)count * (member->thread + 1) / member->threads);
}

#endif
