/* The processors of this process: see processors.h. */
#include "system/processors.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
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

int processors_usable(const char *root) {
  topology t;
  topology_read(root, &t);
  return within_quota(root, topology_cpus(&t));
}

int processors_threads(const char *root, const topology *t) { return within_quota(root, topology_threads(t)); }
