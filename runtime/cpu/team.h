/* The threads of a backend. A team runs a function on all its members at once, with barriers between the phases of the
 * function. A waiting member spins for 50 microseconds, the usual imbalance of a phase, and then sleeps, so that it
 * does not take a processor from a member for which it waits. */
#ifndef DT_CPU_TEAM_H
#define DT_CPU_TEAM_H

#include "shares.h"
#include "system/status.h"
#include "system/topology.h"

typedef struct cpu_team cpu_team;

/* One of the threads that run a function. */
typedef struct {
  cpu_team *team;
  int thread, threads;
  uint64_t begin, end; /* its share */
} cpu_member;

/* Opens a team of `threads` members, one of which is the caller's thread. If the processors are of several kinds or on
 * several nodes, each of the other threads stays among those of one group, as topology_seat chooses. processors NULL:
 * threads may run anywhere. DT_EDEVICE: the system does not allow that many threads. */
dt_status cpu_team_open(int threads, const topology *processors, cpu_team **out, dt_error *err);
void cpu_team_close(cpu_team *team); /* does nothing if team is NULL */

/* The nodes on which the members run; NULL: memory needs no placement, since the machine has one node, or threads may
 * run anywhere. */
const os_cpus *cpu_team_nodes(const cpu_team *team);

/* Runs body on the team, with the caller as thread 0, and returns when all members have ended. If other processes use
 * our processors, so that members wait for more than a third of the time, it uses fewer threads for a while. */
void cpu_team_run(cpu_team *team, void (*body)(const cpu_member *, void *), void *context);
/* The same for a pass over this number of rows. Members get shares by their speeds in passes before: one speed for few
 * rows, where memory is the limit, and one for many. */
void cpu_team_run_pass(cpu_team *team, int rows, void (*body)(const cpu_member *, void *), void *context);

/* Measure a member's speed in a pass, in any unit of work; `began` is what cpu_work_begins returned. */
int64_t cpu_work_begins(const cpu_member *member);
void cpu_work_ends(const cpu_member *member, int64_t began, double work);

/* A barrier: waits until all members that run the function have arrived. */
void cpu_wait(const cpu_member *member);
/* The same barrier, for use while thread 0 waits for other machines. The time spent in it does not count as waiting,
 * since it says nothing about our processors. */
void cpu_wait_for_ranks(const cpu_member *member);

/* Computes this thread's share [*first, *last) of `count` items. The shares rise with the thread's number. */
static inline void cpu_share(const cpu_member *member, int count, int *first, int *last) {
  *first = shares_first(count, member->begin);
  *last = shares_first(count, member->end);
}

#endif
