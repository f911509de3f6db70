/* Progress and notes of measuring and learning on standard error: dtl_cost_measuring_shown, dtl_learning_shown. */
#include "host.h"

#include <stdio.h>
#include <unistd.h>

#define TELL_MS 10e3 /* between two lines, if standard error is not a terminal */

static void show_progress(void *user, int done, int total) {
  double *shown_ms = user; /* the clock at the last line, or at the beginning */
  if (isatty(STDERR_FILENO)) {
    fprintf(stderr, "\rmeasuring the cost of passes: %d %%%s", 100 * done / total, done < total ? "" : "\r\033[K");
  } else if (done < total && dt_clock_ms() - *shown_ms >= TELL_MS) {
    fprintf(stderr, "dtrun: measuring the cost of passes: %d %%\n", 100 * done / total);
    *shown_ms = dt_clock_ms();
  }
}

static void show_note(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "dtrun: %s\n", line);
}

dtl_cost_measuring dtl_cost_measuring_shown(const volatile sig_atomic_t *interrupt) {
  static double shown_ms;
  shown_ms = dt_clock_ms();
  return (dtl_cost_measuring){.user = &shown_ms, .progress = show_progress, .note = show_note, .interrupt = interrupt};
}

dtl_learning dtl_learning_shown(const volatile sig_atomic_t *interrupt) {
  return (dtl_learning){.note = show_note, .interrupt = interrupt};
}
