/* The modes of --numa: see numa.h. */
#include "system/numa.h"

#include <string.h>

const char *const NUMA_MODES[] = {"distribute", "isolate", "off", NULL};

bool numa_read(const char *mode, topology *t) {
  topology_read("", t);
  if (mode && !strcmp(mode, "isolate")) topology_keep_node(t, topology_node_of(t, os_cpu()));
  return !mode || strcmp(mode, "off");
}
