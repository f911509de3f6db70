/* The files that come with dtrun: policies, models, drivers. */
#ifndef DT_PATHS_H
#define DT_PATHS_H

#include "system/status.h"

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

/* Where a bundled file lies: "policies/ar.lua" is looked for in $DTRUN_HOME, then where this code was installed or
 * built: share/dtrun next to its program or library or up to three folders above, or the source tree around it. In each
 * of these a policy may lie in policies/papers, too. *path is malloc'd; NULL: it is nowhere. */
dt_status dt_find(const char *relative, char **path, dt_error *err);

/* The folders that dt_find searches and that exist, in order: *n malloc'd strings in a malloc'd array. */
dt_status dt_homes(char ***homes, int *n, dt_error *err);

#pragma GCC visibility pop

#endif
