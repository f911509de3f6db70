/* Starts programs that are installed with this one. They are separate so that dtrun starts without their libraries. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Finds such a program next to this one, or where it is installed. False: it is not there. */
bool program_find(const char *name, char path[2 * PATH_MAX]);

/* Replaces the process by this program. It sets argv[0]; argv ends in NULL. If the program does not start, it returns
 * an exit status; if the program is not there, the message is `missing`, which says what to do. */
int program_run(const char *name, char **argv, const char *missing);

#endif
