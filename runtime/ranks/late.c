/* Waits no longer than a limit: see late.h. */
#include "ranks/late.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* Counts seconds one by one: if all programs are suspended for a while, that counts as one second. */
static void *watch(void *context) {
  late_watch *w = context;
  pthread_mutex_lock(&w->lock);
  for (int waited = 0; !w->ended && waited < w->wait;) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec++;
    waited += pthread_cond_timedwait(&w->changed, &w->lock, &end) == ETIMEDOUT;
  }
  bool late = !w->ended;
  pthread_mutex_unlock(&w->lock);
  if (late) w->call(w->ranks, w->seconds);
  return NULL;
}

dt_status late_begin(late_watch *w, dt_error *err) {
  pthread_condattr_t monotonic;
  sigset_t all, before;
  w->ended = false;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&w->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  sigfillset(&all); /* the caller's threads handle signals */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&w->thread, NULL, watch, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed ? dt_fail(err, DT_EDEVICE, "cannot start a thread: %s", strerror(failed)) : DT_OK;
}

void late_end(late_watch *w) {
  pthread_mutex_lock(&w->lock);
  w->ended = true;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
}
