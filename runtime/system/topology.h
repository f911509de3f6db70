/* The processors that this process may use, in groups of equally fast ones of one NUMA node. */
#ifndef DT_TOPOLOGY_H
#define DT_TOPOLOGY_H

#include "system/os.h"

enum {
  TOPOLOGY_GROUPS = 64,   /* further kinds of processors join the last group */
  TOPOLOGY_FASTEST = 1024 /* largest capacity of Linux */
};

typedef struct {
  int capacity; /* the speed of a core, 1 to TOPOLOGY_FASTEST */
  int node;
  int cpus, cores; /* processors, and the physical cores that they belong to */
  os_cpus set;
} topology_group;

/* The groups, fastest first, equally fast ones in the order of their nodes. */
typedef struct {
  int groups;
  topology_group group[TOPOLOGY_GROUPS];
  int nodes; /* NUMA nodes of the groups as they were read */
} topology;

/* On Linux: reads /proc and /sys below `root` ("": this machine). A file that is missing leaves its default: all
 * processors are allowed, each is a core of its own, all are equally fast and on node 0. With POSIX alone, these
 * defaults hold for all processors. There is at least one group. */
void topology_read(const char *root, topology *t);

/* Keeps the groups of this node only; does nothing if the node has none. */
void topology_keep_node(topology *t, int node);
/* The node of a processor; -1: it is in no group. */
int topology_node_of(const topology *t, int cpu);

int topology_cpus(const topology *t);
/* How many threads to start: one for each core that is at least two thirds as fast as the fastest. Passes over few rows
 * are memory-bound: slower cores add little to them, and finish late. */
int topology_threads(const topology *t);

/* Chooses the group of each of `threads` threads, in the order of the groups. The fastest groups are filled first, with
 * a thread for each core or, if there are more threads than cores, for each processor; equally fast groups get threads
 * in proportion to their size. Returns how many threads got a group: fewer than `threads` if processors run out. */
int topology_seat(const topology *t, int threads, int *group);

#endif
