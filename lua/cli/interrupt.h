/* Handles Ctrl-C and other signals that end a run. */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t interrupted; /* set by the first Ctrl-C, and when the reader of standard output has gone */

/* From now on the first Ctrl-C sets `interrupted`, which ends the run, and the second one kills the process. A process
 * that ignores Ctrl-C (a background job) keeps ignoring it. */
void catch_interrupt(void);

/* From now on every Ctrl-C sets `interrupted` and none kills the process; with cut_reads Ctrl-C also ends waiting for a
 * line at the terminal. */
void catch_interrupts(bool cut_reads);

/* From now on every Ctrl-C and every SIGTERM sets `interrupted`, and writing to a client that has disconnected does not
 * kill the process. */
void catch_stop(void);

/* From now on the process prints a line if mpirun terminates it. */
void catch_end(void);

#endif
