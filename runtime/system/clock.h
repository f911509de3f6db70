/* The clock for all timings. */
#ifndef DT_CLOCK_H
#define DT_CLOCK_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

double dt_clock_ms(void); /* monotonic, milliseconds */

#pragma GCC visibility pop

/* Makes the clock jump ahead, to simulate the time of passes of a scripted pair. ms must be 0 to 1e12; other values are
 * ignored. */
void dt_clock_skip(double ms);

#endif
