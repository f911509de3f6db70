/* The processors of a machine, as Linux describes them in /proc and /sys: see topology.h. */
#include "system/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, LIST = 16384 /* bytes of a list of 1024 processors */ };

/* Reads the first line of root + name that begins with `key`, without the key. */
static bool read_line(const char *root, const char *name, const char *key, char line[LIST]) {
  char path[PATH];
  if ((size_t)snprintf(path, sizeof path, "%s%s", root, name) >= sizeof path) return false;
  FILE *f = fopen(path, "r");
  if (!f) return false;
  bool found = false;
  while (!found && fgets(line, LIST, f)) found = strncmp(line, key, strlen(key)) == 0;
  fclose(f);
  if (found) memmove(line, line + strlen(key), strlen(line + strlen(key)) + 1);
  return found;
}

/* Reads a list such as 0-3,8,10-11. Returns false if it has no number. */
static bool read_set(const char *root, const char *name, const char *key, os_cpus *set) {
  char line[LIST];
  bool any = false;
  *set = (os_cpus){0};
  if (!read_line(root, name, key, line)) return false;
  for (char *at = line, *end;; at = end + 1) {
    long first = strtol(at, &end, 10), last = first;
    if (end == at || first < 0) break;
    if (*end == '-') last = strtol(end + 1, &end, 10);
    for (long i = first; i <= last && i < OS_CPUS; i++) os_cpus_add(set, (int)i), any = true;
    if (*end != ',') break;
  }
  return any;
}

/* The processors that this thread may use and that are online; the first file alone may name absent ones, too. */
static os_cpus allowed(const char *root) {
  os_cpus mask, online;
  bool masked = read_set(root, "/proc/thread-self/status", "Cpus_allowed_list:", &mask);
  if (!read_set(root, "/sys/devices/system/cpu/online", "", &online)) {
    for (int i = 0; i < os_online_cpus() && i < OS_CPUS && !masked; i++) os_cpus_add(&online, i);
    return masked ? mask : online;
  }
  for (size_t i = 0; masked && i < sizeof online.bits / sizeof *online.bits; i++) online.bits[i] &= mask.bits[i];
  return online;
}

static int read_number(const char *root, const char *format, int cpu) {
  char name[128], line[LIST];
  snprintf(name, sizeof name, format, cpu);
  return read_line(root, name, "", line) ? atoi(line) : 0;
}

/* What files say about all processors at once: which are the slow ones of a hybrid processor of Intel's, and the nodes.
 */
typedef struct {
  os_cpus slow;
  int node[OS_CPUS];
} machine;

static void read_machine(const char *root, machine *m) {
  os_cpus fast, nodes, cpus;
  *m = (machine){0};
  if (read_set(root, "/sys/devices/cpu_core/cpus", "", &fast))
    read_set(root, "/sys/devices/cpu_atom/cpus", "", &m->slow);
  read_set(root, "/sys/devices/system/node/online", "", &nodes);
  for (int node = 0; node < OS_CPUS; node++) {
    char name[128];
    snprintf(name, sizeof name, "/sys/devices/system/node/node%d/cpulist", node);
    if (!os_cpus_have(&nodes, node) || !read_set(root, name, "", &cpus)) continue;
    for (int cpu = 0; cpu < OS_CPUS; cpu++)
      if (os_cpus_have(&cpus, cpu)) m->node[cpu] = node;
  }
}

/* Linux reports capacities on ARM and RISC-V only. The slow cores of a hybrid processor count as half as fast, about
 * their ratio in arithmetic. */
static int capacity_of(const char *root, const machine *m, int cpu) {
  int given = read_number(root, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
  if (given > 0) return given < TOPOLOGY_FASTEST ? given : TOPOLOGY_FASTEST;
  return os_cpus_have(&m->slow, cpu) ? TOPOLOGY_FASTEST / 2 : TOPOLOGY_FASTEST;
}

static topology_group *find_group(topology *t, int capacity, int node) {
  int i = 0;
  while (i < t->groups && (t->group[i].capacity != capacity || t->group[i].node != node)) i++;
  if (i == TOPOLOGY_GROUPS) return &t->group[TOPOLOGY_GROUPS - 1];
  if (i == t->groups) t->group[t->groups++] = (topology_group){.capacity = capacity, .node = node};
  return &t->group[i];
}

static int by_speed(const void *a, const void *b) {
  const topology_group *x = a, *y = b;
  return x->capacity != y->capacity ? y->capacity - x->capacity : x->node - y->node;
}

void topology_read(const char *root, topology *t) {
  machine m;
  os_cpus cpus = allowed(root), seen = {0}, nodes = {0};
  *t = (topology){0};
  read_machine(root, &m);
  for (int cpu = 0; cpu < OS_CPUS; cpu++) {
    if (!os_cpus_have(&cpus, cpu)) continue;
    topology_group *g = find_group(t, capacity_of(root, &m, cpu), m.node[cpu]);
    os_cpus_add(&g->set, cpu), g->cpus++;
    if (!os_cpus_have(&nodes, m.node[cpu])) os_cpus_add(&nodes, m.node[cpu]), t->nodes++;
    if (os_cpus_have(&seen, cpu)) continue; /* on the core of an earlier one */
    char name[128];
    os_cpus siblings;
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    read_set(root, name, "", &siblings);
    for (size_t i = 0; i < sizeof seen.bits / sizeof *seen.bits; i++) seen.bits[i] |= siblings.bits[i];
    g->cores++;
  }
  if (!t->groups)
    *find_group(t, TOPOLOGY_FASTEST, 0) = (topology_group){TOPOLOGY_FASTEST, 0, 1, 1, {{1}}}, t->nodes = 1;
  qsort(t->group, (size_t)t->groups, sizeof *t->group, by_speed);
}
