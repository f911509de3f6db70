/* The files that come with dtrun (policies, models, drivers): where they may lie, the likeliest first. */
#include "dtrun.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HOMES 3

/* The folder that an installed dtrun shares its files from, in `path`. */
static bool shared_folder(char path[PATH_MAX + 16]) {
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  for (int level = 0; level < 2; level++) { /* PREFIX/bin/dtrun -> PREFIX */
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = '\0';
  }
  strcat(path, "/share/dtrun");
  return true;
}

/* Adds the folder where it exists and is not there yet. */
static bool add_home(char **homes, int *n, const char *folder) {
  struct stat info;
  if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) return true;
  for (int i = 0; i < *n; i++)
    if (strcmp(homes[i], folder) == 0) return true;
  return (homes[*n] = strdup(folder)) && ++*n;
}

static void free_homes(char **homes, int n) {
  for (int i = 0; i < n; i++) free(homes[i]);
  free(homes);
}

dt_status dt_homes(char ***homes, int *n, dt_error *err) {
  char shared[PATH_MAX + 16];
  const char *set = getenv("DTRUN_HOME");
  *n = 0;
  *homes = calloc(MAX_HOMES, sizeof **homes);
  bool ok = *homes;
  if (ok && set && *set) ok = add_home(*homes, n, set);
  if (ok && shared_folder(shared)) ok = add_home(*homes, n, shared);
  if (ok && add_home(*homes, n, DTRUN_SOURCE_DIR)) return DT_OK;
  free_homes(*homes, *n);
  *homes = NULL, *n = 0;
  return dt_fail_memory(err, "the folders of dtrun", PATH_MAX);
}

dt_status dt_find(const char *relative, char **path, dt_error *err) {
  char **homes;
  int n;
  dt_status status = dt_homes(&homes, &n, err);
  *path = NULL;
  for (int i = 0; !status && i < n && !*path; i++) {
    if (asprintf(path, "%s/%s", homes[i], relative) < 0) {
      status = dt_fail_memory(err, relative, PATH_MAX);
      *path = NULL;
    } else if (access(*path, F_OK) != 0) {
      free(*path);
      *path = NULL;
    }
  }
  free_homes(homes, n);
  return status;
}
