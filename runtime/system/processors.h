/* How many processors this process may keep busy: those of its affinity mask, as far as its control group's quota of
 * processor time goes. */
#ifndef DT_PROCESSORS_H
#define DT_PROCESSORS_H

/* Both read /proc and /sys below `root`; "" is this machine. At least 1. */
int processors_usable(const char *root); /* that many threads can run at once */
int processors_cores(const char *root);  /* of them, those on cores of their own */

/* Processors' worth of time that the group and those above it may spend, in versions 1 and 2; INFINITY: as much as there is. */
double processors_quota(const char *root);

#endif
