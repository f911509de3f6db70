/* Finds and reads Lua files: see files.h. */
#include "files/files.h"

#include "system/asprintf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_in_lua(const char *name, size_t n) { return n > 4 && !strcmp(name + n - 4, ".lua"); }

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds `name`, which the list then owns, unless the list has it already. */
static bool add_name(char ***names, int *n, char *name) {
  for (int i = 0; i < *n; i++)
    if (!strcmp((*names)[i], name)) {
      free(name);
      return true;
    }
  char **grown = realloc(*names, (size_t)(*n + 1) * sizeof *grown);
  if (!grown) {
    free(name);
    return false;
  }
  *names = grown;
  grown[(*n)++] = name;
  return true;
}

/* Adds the names of a folder's files, without .lua. */
static bool add_folder(char ***names, int *n, const char *path) {
  errno = 0;
  DIR *dir = opendir(path);
  if (!dir) return errno != ENOMEM;
  bool ok = true;
  for (struct dirent *entry; ok && (entry = readdir(dir));) {
    size_t len = strlen(entry->d_name);
    if (entry->d_name[0] == '.' || !ends_in_lua(entry->d_name, len)) continue;
    char *name = strndup(entry->d_name, len - 4);
    ok = name && add_name(names, n, name);
  }
  closedir(dir);
  return ok;
}

static void free_names(char **names, int n) {
  for (int i = 0; i < n; i++) free(names[i]);
  free(names);
}

/* Adds the names of the files in this folder of all homes, sorted, after the names that the list has. */
static bool add_installed(char ***names, int *n, char *const *homes, int n_homes, const char *folder) {
  const int before = *n;
  for (int i = 0; i < n_homes; i++) {
    char *path;
    if (dt_asprintf(&path, "%s/%s", homes[i], folder) < 0) return false;
    bool ok = add_folder(names, n, path);
    free(path);
    if (!ok) return false;
  }
  if (*n > before) qsort(*names + before, (size_t)(*n - before), sizeof **names, by_name);
  return true;
}

dt_status dtl_installed(const char *folder, char ***names, int *n, dt_error *err) {
  char **homes;
  int n_homes;
  NEED(folder, "folder");
  NEED(names, "names");
  NEED(n, "n");
  *names = NULL;
  *n = 0;
  dt_status status = dt_homes(&homes, &n_homes, err);
  if (status) return status;
  bool ok = add_installed(names, n, homes, n_homes, folder);
  if (ok && !strcmp(folder, "policies")) ok = add_installed(names, n, homes, n_homes, "policies/papers");
  free_names(homes, n_homes);
  if (ok) return DT_OK;
  free_names(*names, *n);
  return dtl_fail(err, DT_ENOMEM, "out of memory: the list of %s", folder);
}

static bool is_in(char **names, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

/* Joins names[n]: "a, b or c", with `last` before the last name. */
static void join(char *out, size_t size, const char *const *names, int n, const char *last) {
  size_t used = 0;
  *out = 0;
  for (int i = 0; i < n && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : i == n - 1 ? last : ", ", names[i]);
}

#define MOST_NEAR 3

static dt_status fail_unknown(const char *what, const char *folder, const char *name, dt_error *err) {
  bool policy = !strcmp(folder, "policies");
  char list[300], here[300], **names, **others;
  int n, n_others;
  dt_status status = dtl_installed(folder, &names, &n, err);
  if (status) return status;
  status = dtl_installed(policy ? "scripts" : "policies", &others, &n_others, err);
  if (status) {
    free_names(names, n);
    return status;
  }
  const char *near[DTL_NEAR];
  int n_near = dtl_near(name, strlen(name), (const char *const *)names, n, near, MOST_NEAR);
  join(list, sizeof list, n_near ? near : (const char *const *)names, n_near ? n_near : n, n_near ? " or " : ", ");
  snprintf(here, sizeof here, "./%.200s.lua", name);
  if (!strchr(name, '/') && access(here, F_OK) == 0)
    status = dtl_fail(err, DT_EINPUT, "no %s '%.100s': did you mean %s?", what, name, here);
  else if (is_in(others, n_others, name))
    status = dtl_fail(err, DT_EINPUT, "no %s '%.100s', but there is a %s of that name: dtrun %s%.100s", what, name,
                      policy ? "driver" : "policy", policy ? "run " : "", name);
  else if (policy && strpbrk(name, " \n"))
    status = dtl_fail(err, DT_EINPUT, "no policy '%.100s': give a prompt with -p", name);
  else if (n_near)
    status = dtl_fail(err, DT_EINPUT, "no %s '%.100s': did you mean %s? ('dtrun --list' shows all)", what, name, list);
  else
    status = dtl_fail(err, DT_EINPUT, "no %s '%.100s'; installed: %s%s", what, name, n > 0 ? list : "none",
                      policy ? " (give a model with -m)" : "");
  free_names(names, n);
  free_names(others, n_others);
  return status;
}

/* *path: malloc'd; NULL: not found. False: out of memory. */
static bool find(const char *folder, const char *name, char **path) {
  char relative[300];
  if (strchr(name, '/') || ends_in_lua(name, strlen(name))) {
    *path = NULL;
    return access(name, F_OK) != 0 || (*path = strdup(name));
  }
  snprintf(relative, sizeof relative, "%s/%.200s.lua", folder, name);
  return dt_find(relative, path, NULL) == DT_OK;
}

dt_status dtl_locate(const char *what, const char *folder, const char *name, char **path, dt_error *err) {
  if (!find(folder, name, path)) return dtl_fail(err, DT_ENOMEM, "out of memory: the %s '%.100s'", what, name);
  return *path ? DT_OK : fail_unknown(what, folder, name, err);
}

/* Reads all bytes of an open file; if f is NULL, errno says why it could not be opened. */
static dt_status read_all(const char *what, const char *path, FILE *f, size_t most, char **text, size_t *len,
                          dt_error *err) {
  struct stat st;
  if (!f || fstat(fileno(f), &st))
    return errno == ENOMEM ? dtl_fail(err, DT_ENOMEM, "out of memory: %s", path)
                           : dtl_fail(err, DT_EINPUT, "%s: cannot read the %s: %s", path, what, strerror(errno));
  if (!S_ISREG(st.st_mode)) return dtl_fail(err, DT_EINPUT, "%s: cannot read the %s: not a regular file", path, what);
  if ((size_t)st.st_size > most)
    return dtl_fail(err, DT_EINPUT, "%s: cannot read the %s: %lld bytes are more than the maximum of %zu", path, what,
                    (long long)st.st_size, most);
  if (!(*text = malloc((size_t)st.st_size + 1)))
    return dtl_fail(err, DT_ENOMEM, "out of memory: %lld bytes for %s", (long long)st.st_size, path);
  *len = fread(*text, 1, (size_t)st.st_size, f);
  (*text)[*len] = 0;
  return DT_OK;
}

dt_status dtl_read_file(const char *what, const char *path, size_t most, char **text, size_t *len, dt_error *err) {
  FILE *f = fopen(path, "rb");
  dt_status status = read_all(what, path, f, most, text, len, err);
  if (f) fclose(f);
  return status;
}
