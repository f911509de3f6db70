/* Threads and the processors that they run on: see os.h. */
#include "system/os.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(os_cpus) == sizeof(cpu_set_t) && OS_CPUS == CPU_SETSIZE, "the bits of Linux's sets");

void os_wait(atomic_int *word, int value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }

void os_wake(atomic_int *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

void os_set_idle(pthread_t thread, bool idle) {
  pthread_setschedparam(thread, idle ? SCHED_IDLE : SCHED_OTHER, &(struct sched_param){0});
}

void os_allowed(os_cpus *set) {
  cpu_set_t own;
  *set = (os_cpus){0};
  if (!sched_getaffinity(0, sizeof own, &own)) memcpy(set, &own, sizeof own);
}

bool os_restrict(const os_cpus *set) {
  cpu_set_t own;
  memcpy(&own, set, sizeof own);
  return !sched_setaffinity(0, sizeof own, &own);
}

int os_cpu(void) { return sched_getcpu(); }
