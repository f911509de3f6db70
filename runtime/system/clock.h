/* The clock of everything that is timed. */
#ifndef DT_CLOCK_H
#define DT_CLOCK_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

double dt_clock_ms(void); /* monotonic, milliseconds */

#pragma GCC visibility pop

/* Makes the clock jump ahead, which is how passes of a scripted pair take time; from 0 to 1e12 ms, others are
 * ignored. */
void dt_clock_skip(double ms);

#endif
