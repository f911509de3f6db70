/* Whether other programs disturbed a measurement: see dtl_disturbed in host.h. */
#include "host.h"

#include "system/os.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define LEAST_CPU 0.9       /* minimum processor time / wall time: one of our threads computes at any moment */
#define MOST_SWITCHES 25.0  /* per second of a busy processor; a competing process causes some hundred */
#define FEWEST_SWITCHES 2   /* this many happen even in the shortest run */
#define MOST_STEAL 0.02     /* maximum stolen time / time of all processors */
#define LEAST_STEAL_MS 25.0 /* less does not count, since the system counts hundredths of a second */

static double milliseconds(struct timeval t) { return (double)t.tv_sec * 1e3 + (double)t.tv_usec * 1e-3; }

dtl_usage dtl_usage_now(bool children) {
  struct rusage r = {0};
  struct timespec cpu = {0};
  getrusage(children ? RUSAGE_CHILDREN : RUSAGE_SELF, &r);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  return (dtl_usage){.wall_ms = dt_clock_ms(),
                     .cpu_ms = children ? milliseconds(r.ru_utime) + milliseconds(r.ru_stime)
                                        : (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec * 1e-6,
                     .steal_ms = os_stolen_ms(),
                     .switches = os_preemptions(children)};
}

bool dtl_disturbed(const dtl_usage *before, const dtl_usage *after, bool computes, char *why, size_t size) {
  if (!before || !after || (!why && size)) return false;
  double wall = after->wall_ms - before->wall_ms, cpu = after->cpu_ms - before->cpu_ms;
  double steal = after->steal_ms - before->steal_ms, busy = cpu > wall ? cpu : wall;
  long switches = after->switches - before->switches, processors = os_online_cpus();
  if (computes && cpu < LEAST_CPU * wall)
    snprintf(why, size, "it had a processor for only %.0f %% of the time", 100 * cpu / wall);
  else if (switches > FEWEST_SWITCHES && (double)switches > MOST_SWITCHES * busy / 1000)
    snprintf(why, size, "it was preempted %ld times in %.2f s", switches, wall / 1000);
  else if (steal > LEAST_STEAL_MS && steal > MOST_STEAL * wall * (double)processors)
    snprintf(why, size, "%.0f %% of the processors' time was stolen", 100 * steal / wall / (double)processors);
  else
    return false;
  return true;
}
