/* The threads of one pass: see team.h. */
#include "team.h"

#include <linux/futex.h>
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A wait spins for some microseconds, which is what a phase's imbalance takes; then gives the processor to whoever wants
 * it; then sleeps, so that more threads than cores (or a busy machine) cost a switch and not a time slice. */
enum { SPINS = 4096, YIELDS = 32 };

void cpu_team_run(int threads, void (*body)(const cpu_member *, void *), void *context) {
  cpu_barrier barrier = {0};
  if (threads == 1) {
    body(&(cpu_member){&barrier, 0, 1}, context);
    return;
  }
#pragma omp parallel num_threads(threads)
  body(&(cpu_member){&barrier, omp_get_thread_num(), omp_get_num_threads()}, context);
}

static void sleep_through(cpu_barrier *b, int phase) {
  atomic_fetch_add(&b->asleep, 1);
  while (atomic_load(&b->phase) == phase) syscall(SYS_futex, &b->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
  atomic_fetch_sub(&b->asleep, 1);
}

void cpu_wait(const cpu_member *member) {
  if (member->threads == 1) return;
  cpu_barrier *b = member->barrier;
  int phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == member->threads) {
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store(&b->phase, phase + 1); /* sequentially consistent: either we see a sleeper or it sees the new phase */
    if (atomic_load(&b->asleep)) syscall(SYS_futex, &b->phase, FUTEX_WAKE_PRIVATE, member->threads, NULL, NULL, 0);
    return;
  }
  for (int i = 0; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; i++) {
    if (i >= SPINS + YIELDS) {
      sleep_through(b, phase);
      return;
    }
    if (i >= SPINS) sched_yield();
#ifdef __x86_64__
    else
      __builtin_ia32_pause();
#endif
  }
}
