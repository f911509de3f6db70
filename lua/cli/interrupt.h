/* Ctrl-C. */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t interrupted; /* set by the first Ctrl-C, and when nobody reads what is written */

/* From now on the first Ctrl-C asks the run to end and the second one kills. Where it is ignored (a job in the background),
 * it stays so. */
void catch_interrupt(void);

/* From now on every Ctrl-C sets it and none kills; with cut_reads it also ends a wait for a line at the terminal. */
void catch_interrupts(bool cut_reads);

/* From now on mpirun's word to end ends the process with a line. */
void catch_end(void);

#endif
