/* Messages of measuring and learning on standard error: for dtl_calibration_shown, dtl_learning_shown. */
#include "host.h"

#include <stdio.h>
#include <unistd.h>

static void show_progress(void *user, int done, int total) {
  (void)user;
  if (isatty(STDERR_FILENO))
    fprintf(stderr, "\rmeasuring what passes cost: %d %%%s", 100 * done / total, done < total ? "" : "\r\033[K");
}

static void show_note(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "dtrun: %s\n", line);
}

dtl_calibration dtl_calibration_shown(const volatile sig_atomic_t *interrupt) {
  return (dtl_calibration){.progress = show_progress, .note = show_note, .interrupt = interrupt};
}

dtl_learning dtl_learning_shown(const volatile sig_atomic_t *interrupt) {
  return (dtl_learning){.note = show_note, .interrupt = interrupt};
}
