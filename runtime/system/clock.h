/* The clock of everything that is timed. */
#ifndef DT_CLOCK_H
#define DT_CLOCK_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

double dt_clock_ms(void); /* monotonic, milliseconds */

#pragma GCC visibility pop

void dt_clock_skip(double ms); /* makes the clock jump ahead: how passes of a scripted pair take time */

#endif
