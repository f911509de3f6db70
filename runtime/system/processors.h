/* The number of processors that this process may use: its affinity mask, limited by its control group's quota of
 * processor time. */
#ifndef DT_PROCESSORS_H
#define DT_PROCESSORS_H

/* Both read /proc and /sys below `root` ("": this machine) and return at least 1. */
int processors_usable(const char *root); /* threads that can run at once */
int processors_cores(
    const char *root); /* the physical cores among them, except those that are too slow (processors_worth) */

/* Returns how many of n >= 1 cores with these capacities (Linux's cpu_capacity, in any unit) to use for the highest
 * throughput if each gets the same share of the work: the k for which k times the capacity of the k-th fastest core is
 * largest; in a tie, the largest k. Sorts `capacity` from fastest to slowest. */
int processors_worth(int *capacity, int n);

/* Returns the quota, in processors, of the control group and the groups above it (versions 1 and 2); INFINITY: no
 * quota. */
double processors_quota(const char *root);

#endif
