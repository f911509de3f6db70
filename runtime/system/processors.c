/* The processors of this process: see processors.h. */
#include "system/processors.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096 };

/* Reads up to two numbers at the beginning of a file; returns how many it has. */
static int read_numbers(const char *path, double *a, double *b) {
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  int n = fscanf(f, "%lf %lf", a, b);
  fclose(f);
  return n > 0 ? n : 0;
}

static int read_number(const char *root, const char *format, int cpu) {
  char name[128], path[PATH];
  double value, more;
  snprintf(name, sizeof name, format, cpu);
  snprintf(path, sizeof path, "%s%s", root, name);
  return read_numbers(path, &value, &more) ? (int)value : -1;
}

/* The quota of one group in one hierarchy. "max" in version 2, and -1 in version 1, mean none. */
static double quota_in(const char *root, const char *hierarchy, const char *group) {
  char path[3 * PATH];
  double quota, period, more;
  snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s%s/cpu.max", root, hierarchy, group);
  if (read_numbers(path, &quota, &period) == 2 && period > 0) return quota / period;
  snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s%s/cpu.cfs_quota_us", root, hierarchy, group);
  if (!read_numbers(path, &quota, &more) || quota <= 0) return INFINITY;
  snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s%s/cpu.cfs_period_us", root, hierarchy, group);
  return read_numbers(path, &period, &more) && period > 0 ? quota / period : INFINITY;
}

/* The least quota of a group and its ancestors. In a container the path may be the one outside; then only its last
 * ancestor, the root, exists. */
static double quota_above(const char *root, const char *hierarchy, char *group) {
  double least = INFINITY;
  for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
    *end = 0;
    least = fmin(least, quota_in(root, hierarchy, group));
  }
  return least;
}

static bool names(const char *list, const char *controller) {
  size_t len = strlen(controller);
  for (;; list++) {
    if (strncmp(list, controller, len) == 0 && (list[len] == ',' || list[len] == 0)) return true;
    if (!(list = strchr(list, ','))) return false;
  }
}

double processors_quota(const char *root) {
  char path[PATH], line[PATH];
  double least = INFINITY;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) { /* number:controllers:path */
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0, controllers++;
    if (!*controllers) /* version 2 */
      least = fmin(least, quota_above(root, "", group));
    else if (names(controllers, "cpu"))
      least = fmin(least, quota_above(root, "cpu", group));
  }
  if (f) fclose(f);
  return least;
}

/* Rounds the quota: less than half of a processor's time does not justify another thread. */
static int within_quota(const char *root, int n) {
  double quota = floor(processors_quota(root) + 0.5);
  return quota >= n ? n : quota > 1 ? (int)quota : 1;
}

static int allowed(cpu_set_t *set) {
  if (sched_getaffinity(0, sizeof *set, set)) CPU_ZERO(set);
  return CPU_COUNT(set) ? CPU_COUNT(set) : 1;
}

int processors_usable(const char *root) {
  cpu_set_t set;
  return within_quota(root, allowed(&set));
}

static int falling(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

int processors_worth(int *capacity, int n) {
  int best = 1;
  qsort(capacity, (size_t)n, sizeof *capacity, falling);
  for (int k = 2; k <= n; k++)
    if ((long long)k * capacity[k - 1] >= (long long)best * capacity[best - 1]) best = k;
  return best;
}

int processors_cores(const char *root) {
  enum { FASTEST = 1024 }; /* largest capacity of Linux; if it reports none, all cores count as equally fast */
  cpu_set_t set;
  int seen[CPU_SETSIZE][2], capacity[CPU_SETSIZE] = {FASTEST}, n = 0;
  allowed(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int core = read_number(root, "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    int package = read_number(root, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    int i = 0;
    while (i < n && (core < 0 || seen[i][0] != core || seen[i][1] != package)) i++;
    if (i < n) continue;
    int given = read_number(root, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    seen[n][0] = core, seen[n][1] = package, capacity[n++] = given > 0 ? given : FASTEST;
  }
  return within_quota(root, processors_worth(capacity, n ? n : 1));
}
