/* Finding and reading Lua files: see files.h. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_in_lua(const char *name, size_t n) { return n > 4 && !strcmp(name + n - 4, ".lua"); }

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds the folder's names (without .lua) that are not yet in names. */
static char **add_folder(char **names, int *n, const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return names;
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t len = strlen(entry->d_name);
    if (entry->d_name[0] == '.' || !ends_in_lua(entry->d_name, len)) continue;
    char *name = strndup(entry->d_name, len - 4);
    bool known = !name;
    for (int i = 0; i < *n && !known; i++) known = !strcmp(names[i], name);
    char **grown = known ? NULL : realloc(names, (size_t)(*n + 1) * sizeof *names);
    if (grown) {
      names = grown;
      names[(*n)++] = name;
    } else {
      free(name);
    }
  }
  closedir(dir);
  return names;
}

char **dtl_installed(const char *folder, int *n) {
  char **names = NULL;
  int n_homes;
  char **homes = dt_homes(&n_homes);
  *n = 0;
  for (int i = 0; i < n_homes; i++) {
    char *path;
    if (asprintf(&path, "%s/%s", homes[i], folder) >= 0) {
      names = add_folder(names, n, path);
      free(path);
    }
    free(homes[i]);
  }
  free(homes);
  if (*n > 0) qsort(names, (size_t)*n, sizeof *names, by_name);
  return names;
}

static void fail_unknown(const char *what, const char *folder, const char *name, dtl_error *err) {
  char list[300] = "";
  int n;
  char **names = dtl_installed(folder, &n);
  for (int i = 0; i < n; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    free(names[i]);
  }
  free(names);
  dtl_fail(err, DTL_INPUT, "no %s '%.100s'; installed: %s", what, name, n > 0 ? list : "none");
}

char *dtl_locate(const char *what, const char *folder, const char *name, dtl_error *err) {
  char *path = NULL;
  if (strchr(name, '/') || ends_in_lua(name, strlen(name))) {
    if (access(name, F_OK) == 0) path = strdup(name);
  } else {
    char *relative;
    if (asprintf(&relative, "%s/%s.lua", folder, name) < 0) return NULL;
    path = dt_find(relative);
    free(relative);
  }
  if (!path) fail_unknown(what, folder, name, err);
  return path;
}

char *dtl_read_file(const char *what, const char *path, size_t most, size_t *len, dtl_error *err) {
  struct stat st;
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  if (!f || fstat(fileno(f), &st)) {
    dtl_fail(err, DTL_INPUT, "%s: cannot read the %s: %s", path, what, strerror(errno));
  } else if (!S_ISREG(st.st_mode)) {
    dtl_fail(err, DTL_INPUT, "%s: cannot read the %s: not a file", path, what);
  } else if ((size_t)st.st_size > most) {
    dtl_fail(err, DTL_INPUT, "%s: cannot read the %s: %lld bytes are more than %zu", path, what, (long long)st.st_size,
             most);
  } else if (!(text = malloc((size_t)st.st_size + 1))) {
    dtl_fail(err, DTL_DEVICE, "out of memory: %lld bytes for %s", (long long)st.st_size, path);
  } else {
    *len = fread(text, 1, (size_t)st.st_size, f);
    text[*len] = 0;
  }
  if (f) fclose(f);
  return text;
}
