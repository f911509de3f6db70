/* The files that come with dtrun: policies, models, drivers. */
#ifndef DT_PATHS_H
#define DT_PATHS_H

#include "system/status.h"

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

/* Finds a bundled file, such as "policies/ar.lua". It searches $DTRUN_HOME, then the places where this code was
 * installed or built: share/dtrun next to its program or library or up to three folders above, or the source tree
 * around it. In each of these, policies are also searched in policies/papers. *path is malloc'd; it is NULL if the file
 * is not found. */
dt_status dt_find(const char *relative, char **path, dt_error *err);

/* Lists the existing folders that dt_find searches, in order: *n malloc'd strings in a malloc'd array. */
dt_status dt_homes(char ***homes, int *n, dt_error *err);

#pragma GCC visibility pop

#endif
