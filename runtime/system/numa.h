/* Where threads run and memory lies on machines with several NUMA nodes. */
#ifndef DT_NUMA_H
#define DT_NUMA_H

#include "system/topology.h"

/* Values of --numa, the default first. */
extern const char *const NUMA_MODES[];

/* Reads the processors that a mode uses: with "isolate" those of the caller's node, otherwise all. mode: one of
 * NUMA_MODES; NULL: the default. Returns whether threads and memory are to be placed by them: not with "off". */
bool numa_read(const char *mode, topology *t);

#endif
