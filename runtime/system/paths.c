/* The files that come with dtrun (policies, models, drivers): their possible places, the likeliest first. */
#include "system/paths.h"

#include "system/asprintf.h"
#include "system/need.h"
#include "system/os.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HOMES 2
#define LEVELS 4 /* build/asan/tests/test_tree, lib/x86_64-linux-gnu/libdtrun.so */

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Whether folder/below has the folder `mark`; if so, its path is in home[PATH_MAX]. */
static bool is_home(char *home, const char *folder, const char *below, const char *mark) {
  char inside[PATH_MAX + 16];
  if (snprintf(home, PATH_MAX, "%s%s", folder, below) >= PATH_MAX) return false;
  snprintf(inside, sizeof inside, "%s/%s", home, mark);
  return is_folder(inside);
}

/* The place where this code was installed or built: share/dtrun next to its file or above it, or a source tree around
 * it. Both may have been moved. */
static bool own_home(char *home) {
  char folder[PATH_MAX];
  if (!os_own_file(folder)) return false;
  for (int level = 0; level < LEVELS; level++) {
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) return false;
    *slash = '\0';
    if (is_home(home, folder, "/share/dtrun", "policies") || is_home(home, folder, "", "lua/dt")) return true;
  }
  return false;
}

static bool add_home(char **homes, int *n, const char *folder) {
  if (!is_folder(folder) || (*n > 0 && strcmp(homes[0], folder) == 0)) return true;
  return (homes[*n] = strdup(folder)) && ++*n;
}

static void free_homes(char **homes, int n) {
  for (int i = 0; i < n; i++) free(homes[i]);
  free(homes);
}

dt_status dt_homes(char ***homes, int *n, dt_error *err) {
  NEED(homes, "homes");
  NEED(n, "n");
  char own[PATH_MAX];
  const char *set = getenv("DTRUN_HOME");
  *n = 0;
  *homes = calloc(MAX_HOMES, sizeof **homes);
  bool ok = *homes;
  if (ok && set && *set) ok = add_home(*homes, n, set);
  if (ok && add_home(*homes, n, own_home(own) ? own : DTRUN_SOURCE_DIR)) return DT_OK;
  free_homes(*homes, *n);
  *homes = NULL, *n = 0;
  return dt_fail_memory(err, "the folders of dtrun", PATH_MAX);
}

/* *path: home/folder/name, malloc'd, if there is such a file; otherwise NULL. */
static dt_status find_in(const char *home, const char *folder, const char *name, char **path, dt_error *err) {
  if (dt_asprintf(path, "%s/%s%s", home, folder, name) < 0) {
    *path = NULL;
    return dt_fail_memory(err, name, PATH_MAX);
  }
  if (access(*path, F_OK) != 0) {
    free(*path);
    *path = NULL;
  }
  return DT_OK;
}

dt_status dt_find(const char *relative, char **path, dt_error *err) {
  NEED(relative, "relative");
  NEED(path, "path");
  static const char policies[] = "policies/";
  const char *policy = strncmp(relative, policies, sizeof policies - 1) ? NULL : relative + sizeof policies - 1;
  char **homes;
  int n;
  dt_status status = dt_homes(&homes, &n, err);
  *path = NULL;
  for (int i = 0; !status && i < n && !*path; i++) {
    status = find_in(homes[i], "", relative, path, err);
    if (!status && !*path && policy) status = find_in(homes[i], "policies/papers/", policy, path, err);
  }
  free_homes(homes, n);
  return status;
}
