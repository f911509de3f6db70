/* Threads: see os.h. POSIX has no affinity and no idle priority. */
#include "system/os.h"

/* Where threads sleep. Several words may share one of these: a thread whose word has not changed sleeps again. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
} place;

#define PLACE                                                                                                          \
  { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER }
static place places[] = {PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, PLACE};

/* Words are on cache lines of their own. */
static place *place_of(const atomic_int *word) {
  return &places[(uintptr_t)word / 64 % (sizeof places / sizeof *places)];
}

void os_wait(atomic_int *word, int value) {
  place *p = place_of(word);
  pthread_mutex_lock(&p->lock);
  while (atomic_load(word) == value) pthread_cond_wait(&p->changed, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

/* Thanks to the lock, a thread that has seen the old value is asleep before the broadcast. */
void os_wake(atomic_int *word) {
  place *p = place_of(word);
  pthread_mutex_lock(&p->lock);
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

void os_set_idle(pthread_t thread, bool idle) { (void)thread, (void)idle; }

bool os_restrict(const os_cpus *set) {
  (void)set;
  return false;
}

int os_cpu(void) { return -1; }
