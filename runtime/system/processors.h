/* The number of processors that this process may use: its affinity mask, limited by its control group's quota of
 * processor time. */
#ifndef DT_PROCESSORS_H
#define DT_PROCESSORS_H

/* Both read /proc and /sys below `root` ("": this machine) and return at least 1. */
int processors_usable(const char *root); /* threads that can run at once */
int processors_cores(const char *root);  /* the physical cores among them, without slow ones (processors_worth) */

/* How many of n cores of these capacities (Linux's cpu_capacity; any unit) finish most in a time if all get as much to
 * do: the number k of the fastest for which k times the slowest of them is largest; of several, the most. Orders
 * `capacity` from the fastest down. n >= 1. */
int processors_worth(int *capacity, int n);

/* The quota in processors of the control group and the groups above it, versions 1 and 2; INFINITY: none. */
double processors_quota(const char *root);

#endif
