/* How many threads this process should start: what its affinity mask and its control group's quota of processor time
 * allow; with POSIX alone, all processors. */
#ifndef DT_PROCESSORS_H
#define DT_PROCESSORS_H

#include "system/topology.h"

/* Both read the quota, and the first one the topology, below `root` ("": this machine), and return at least 1. */
int processors_usable(const char *root);                     /* threads that can run at once */
int processors_threads(const char *root, const topology *t); /* the default (topology_threads), within the quota */

/* The rest is there on Linux only.
 *
 * Returns the quota, in processors, of the control group and the groups above it (versions 1 and 2); INFINITY: no
 * quota. */
double processors_quota(const char *root);

#endif
