/* The processors of a machine, of which POSIX tells only the number: see topology.h. */
#include "system/topology.h"

void topology_read(const char *root, topology *t) {
  (void)root;
  *t = (topology){.groups = 1, .nodes = 1};
  topology_group *g = &t->group[0];
  os_allowed(&g->set);
  const int n = os_cpus_count(&g->set);
  if (!n) os_cpus_add(&g->set, 0);
  g->capacity = TOPOLOGY_FASTEST, g->cpus = g->cores = n ? n : 1;
}
