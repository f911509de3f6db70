/* The files that come with dtrun (policies, models, drivers): where they may lie, the likeliest first. */
#include "dtrun.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HOMES 3

static char *join(const char *folder, const char *relative) {
  char *path;
  return asprintf(&path, "%s/%s", folder, relative) < 0 ? NULL : path;
}

/* The folder that an installed dtrun shares its files from: a malloc'd path, or NULL. */
static char *shared_folder(void) {
  char exe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n <= 0) return NULL;
  exe[n] = '\0';
  for (int level = 0; level < 2; level++) { /* PREFIX/bin/dtrun -> PREFIX */
    char *slash = strrchr(exe, '/');
    if (!slash) return NULL;
    *slash = '\0';
  }
  return join(exe, "share/dtrun");
}

char **dt_homes(int *n) {
  *n = 0;
  char **homes = calloc(MAX_HOMES, sizeof *homes);
  if (!homes) return NULL;
  const char *set = getenv("DTRUN_HOME");
  char *candidates[MAX_HOMES] = {set && *set ? strdup(set) : NULL, shared_folder(), strdup(DTRUN_SOURCE_DIR)};
  for (int i = 0; i < MAX_HOMES; i++) {
    struct stat info;
    bool usable = candidates[i] && stat(candidates[i], &info) == 0 && S_ISDIR(info.st_mode);
    for (int k = 0; usable && k < *n; k++) usable = strcmp(candidates[i], homes[k]) != 0;
    if (usable)
      homes[(*n)++] = candidates[i];
    else
      free(candidates[i]);
  }
  return homes;
}

char *dt_find(const char *relative) {
  int n;
  char **homes = dt_homes(&n), *found = NULL;
  for (int i = 0; i < n; i++) {
    char *path = found ? NULL : join(homes[i], relative);
    if (path && access(path, F_OK) == 0)
      found = path;
    else
      free(path);
    free(homes[i]);
  }
  free(homes);
  return found;
}
