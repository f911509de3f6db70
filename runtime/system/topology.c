/* Groups of processors, and the threads that they get: see topology.h. */
#include "system/topology.h"

void topology_keep_node(topology *t, int node) {
  int kept = 0;
  for (int i = 0; i < t->groups; i++)
    if (t->group[i].node == node) t->group[kept++] = t->group[i];
  if (kept) t->groups = kept;
}

int topology_node_of(const topology *t, int cpu) {
  for (int i = 0; cpu >= 0 && cpu < OS_CPUS && i < t->groups; i++)
    if (os_cpus_have(&t->group[i].set, cpu)) return t->group[i].node;
  return -1;
}

int topology_cpus(const topology *t) {
  int n = 0;
  for (int i = 0; i < t->groups; i++) n += t->group[i].cpus;
  return n;
}

static int cores_of(const topology *t) {
  int n = 0;
  for (int i = 0; i < t->groups; i++) n += t->group[i].cores;
  return n;
}

int topology_threads(const topology *t) {
  int n = 0;
  for (int i = 0; i < t->groups; i++)
    if (3 * t->group[i].capacity >= 2 * t->group[0].capacity) n += t->group[i].cores;
  return n > 1 ? n : 1;
}

int topology_seat(const topology *t, int threads, int *group) {
  const bool by_core = threads <= cores_of(t);
  int seated = 0;
  for (int first = 0, end; first < t->groups; first = end) { /* groups first..end-1 are equally fast */
    int size = 0, before = 0, took = seated;
    for (end = first; end < t->groups && t->group[end].capacity == t->group[first].capacity; end++)
      size += by_core ? t->group[end].cores : t->group[end].cpus;
    int some = threads - seated < size ? threads - seated : size;
    for (int g = first; some && g < end; g++) {
      before += by_core ? t->group[g].cores : t->group[g].cpus;
      while (seated - took < some * before / size) group[seated++] = g;
    }
  }
  return seated;
}
