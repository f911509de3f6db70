/* The cost of a barrier by the number of threads:
 *
 *   bench_team [THREADS...]     by default 1, 2, 4, .. up to the processors of this machine
 *
 * With more threads than processors, waiting members sleep, and a barrier costs what the system takes to wake them. */
#include "cpu/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BARRIERS = 2000, CALLS = 21 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void wait_often(const cpu_member *me, void *context) {
  int *least = context;
  if (me->thread == 0 && me->threads < *least) *least = me->threads;
  for (int i = 0; i < BARRIERS; i++) cpu_wait_for_ranks(me); /* without the time that would pause threads */
}

static int rising(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int measure(int threads) {
  cpu_team *team;
  dt_error err = {0};
  double us[CALLS];
  int least = threads;
  if (cpu_team_open(threads, NULL, &team, &err)) {
    fprintf(stderr, "bench_team: %s\n", err.message);
    return 1;
  }
  for (int i = 0; i < CALLS; i++) {
    const double start = now_us();
    cpu_team_run(team, wait_often, &least);
    us[i] = (now_us() - start) / BARRIERS;
  }
  cpu_team_close(team);
  qsort(us, CALLS, sizeof *us, rising);
  printf("%4d threads%s: %8.3f us per barrier, from %.3f to %.3f\n", threads, least < threads ? " (some paused)" : "",
         us[CALLS / 2], us[0], us[CALLS - 1]);
  return 0;
}

int main(int argc, char **argv) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  int failed = 0;
  for (int i = 1; i < argc; i++) failed |= measure(atoi(argv[i]) > 0 ? atoi(argv[i]) : 1);
  for (int threads = 1; argc == 1 && threads <= processors; threads *= 2) failed |= measure(threads);
  return failed;
}
