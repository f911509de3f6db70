/* The clock of all timings. */
#include "system/clock.h"

#include <stdatomic.h>
#include <time.h>

#define MOST 1e12 /* ms */

static _Atomic double skipped;

void dt_clock_skip(double ms) {
  if (ms > 0 && ms < MOST) skipped = skipped + ms;
}

double dt_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 + skipped;
}
