/* Programs that come with this one and do what it does not, so that it starts without their libraries. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Its place: beside this program, or where it is installed. False: it is not there. */
bool program_find(const char *name, char path[2 * PATH_MAX]);

/* The process becomes this program: argv[0] is set, and argv ends in NULL. Returns an exit status if it does not start,
 * or is not there: `missing` says the remedy. */
int program_run(const char *name, char **argv, const char *missing);

#endif
