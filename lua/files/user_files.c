/* The user's own files: see user_files.h. */
#include "files/user_files.h"

#include "host.h"
#include "system/asprintf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *user_path(const char *variable, const char *fallback, const char *relative) {
  const char *set = getenv(variable), *home = getenv("HOME");
  char *path = NULL;
  int n = -1;
  if (set && *set == '/')
    n = dt_asprintf(&path, "%s/dtrun/%s", set, relative);
  else if (home && *home == '/')
    n = dt_asprintf(&path, "%s/%s/dtrun/%s", home, fallback, relative);
  return n < 0 ? NULL : path;
}

char *dtl_state_file(const char *relative) {
  return relative ? user_path("XDG_STATE_HOME", ".local/state", relative) : NULL;
}

bool dtl_make_folders(char *path) {
  if (!path || !*path) {
    errno = EINVAL;
    return false;
  }
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
    *slash = '/';
    if (!made) return false;
  }
  return true;
}

static bool write_all(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  bool ok = file && fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
  int code = errno;
  if (file && fclose(file) && ok) return false;
  errno = code;
  return ok;
}

bool user_store(const char *path, const char *text) {
  char *temporary, *folders = strdup(path);
  if (!folders || dt_asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0) temporary = NULL;
  bool ok = temporary && dtl_make_folders(folders) && write_all(temporary, text) && rename(temporary, path) == 0;
  int code = errno;
  if (temporary && !ok) unlink(temporary);
  free(temporary), free(folders);
  errno = code;
  return ok;
}
