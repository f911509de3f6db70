/* Ctrl-C. */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t interrupted; /* set by the first Ctrl-C, and when the reader of our output has gone */

/* From now on the first Ctrl-C ends the run and the second one kills. A process that ignores Ctrl-C (a background job)
 * still does. */
void catch_interrupt(void);

/* From now on every Ctrl-C sets it and none kills; with cut_reads it also ends a wait for a line at the terminal. */
void catch_interrupts(bool cut_reads);

/* From now on Ctrl-C and a termination set it, as often as they come, and a client that has gone kills nobody. */
void catch_stop(void);

/* From now on a termination by mpirun ends the process with a line. */
void catch_end(void);

#endif
