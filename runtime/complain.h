/* How the command line fails: one line on standard error, and an exit status. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

#include "host.h"

enum { EXIT_ENGINE = 1, EXIT_USAGE = 2, EXIT_POLICY = 3, EXIT_INTERRUPTED = 130 };

/* Prints one line and returns `status`. Arguments may hold anything a user typed: what would break the line is replaced. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints what failed and returns the status of that kind of failure. */
int complain_of(const dtl_error *err);
int complain_of_engine(const dt_error *err);

int status_of(const dtl_error *err); /* without a word */

#endif
