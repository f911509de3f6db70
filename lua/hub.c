/* Names of models: see hub.h. The cache's layout: models--ORG--NAME/refs/main names a folder in .../snapshots. */
#include "hub.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value ? value : NULL;
}

/* printf into a malloc'd string; NULL when out of memory. */
static char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *format, ...) {
  char *out;
  va_list args;
  va_start(args, format);
  if (vasprintf(&out, format, args) < 0) out = NULL;
  va_end(args);
  return out;
}

/* As huggingface_hub finds it. */
static char *cache_folder(void) {
  if (set("HF_HUB_CACHE")) return text("%s", set("HF_HUB_CACHE"));
  if (set("HF_HOME")) return text("%s/hub", set("HF_HOME"));
  if (set("XDG_CACHE_HOME")) return text("%s/huggingface/hub", set("XDG_CACHE_HOME"));
  return text("%s/.cache/huggingface/hub", set("HOME") ? set("HOME") : "");
}

/* The length of the part of an id that begins here; 0: it is none. */
static size_t part_length(const char *part) {
  size_t n = strspn(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");
  return part[0] != '.' && (part[n] == '/' || !part[n]) ? n : 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The lengths of ORG and NAME; false: no id. A path whose first folder is there is meant as a path. */
static bool split_id(const char *name, size_t *org, size_t *model) {
  *org = part_length(name);
  if (!*org || name[*org] != '/') return false;
  *model = part_length(name + *org + 1);
  for (const char *at = name + *org; *at; at += 1 + part_length(at + 1))
    if (!part_length(at + 1)) return false;
  char *first = strndup(name, *org);
  bool path = first && is_folder(first);
  free(first);
  return !path;
}

/* The commit that refs/main names: a word, which goes into `commit`. */
static bool read_ref(const char *folder, char *commit, size_t size) {
  char *path = text("%s/refs/main", folder);
  FILE *file = path ? fopen(path, "r") : NULL;
  bool ok = file && fgets(commit, (int)size, file);
  if (file) fclose(file);
  free(path);
  if (ok) commit[strcspn(commit, " \r\n")] = '\0';
  return ok && part_length(commit) == strlen(commit);
}

/* The only .gguf file of a folder without config.json, or the folder. */
static char *inside(char *folder, dtl_error *err) {
  char *config = text("%s/config.json", folder), *found = NULL;
  DIR *dir = config && access(config, F_OK) != 0 ? opendir(folder) : NULL;
  int n = 0;
  free(config);
  if (!dir) return folder;
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t len = strlen(entry->d_name);
    if (len < 6 || strcmp(entry->d_name + len - 5, ".gguf") != 0) continue;
    free(found);
    found = text("%s/%s", folder, entry->d_name);
    n++;
  }
  closedir(dir);
  if (n == 0) return folder;
  if (n > 1) dtl_fail(err, DTL_INPUT, "%s holds %d .gguf files: name the one that is meant", folder, n);
  free(folder);
  if (n == 1) return found;
  free(found);
  return NULL;
}

/* ORG/NAME and what follows, in the cache. */
static char *cached(const char *name, size_t org, size_t model, dtl_error *err) {
  const char *file = name + org + 1 + model;
  char *cache = cache_folder(), commit[128], *path = NULL;
  char *folder = cache ? text("%s/models--%.*s--%.*s", cache, (int)org, name, (int)model, name + org + 1) : NULL;
  if (folder && read_ref(folder, commit, sizeof commit)) path = text("%s/snapshots/%s%s", folder, commit, file);
  if (path && access(path, F_OK) != 0) {
    free(path);
    path = NULL;
  }
  if (!path)
    dtl_fail(err, DTL_INPUT, "%s is neither here nor in %s: hf download %.*s%s%s", name, cache ? cache : "the cache",
             (int)(org + 1 + model), name, *file ? " " : "", *file ? file + 1 : "");
  free(folder), free(cache);
  return path;
}

char *hub_path(const char *name, dtl_error *err) {
  size_t org, model;
  dtl_fail(err, DTL_DEVICE, "out of memory: a path"); /* unless something else is said below */
  bool here = access(name, F_OK) == 0, id = !here && split_id(name, &org, &model);
  char *path = id ? cached(name, org, model, err) : strdup(name);
  return path && is_folder(path) ? inside(path, err) : path;
}

static int is_model(const struct dirent *entry) { return strncmp(entry->d_name, "models--", 8) == 0; }

void hub_each(void (*see)(void *user, const char *folder), void *user) {
  struct dirent **entries;
  char *cache = cache_folder(), commit[128];
  int n = cache ? scandir(cache, &entries, is_model, alphasort) : -1;
  for (int i = 0; i < n; i++) {
    char *folder = text("%s/%s", cache, entries[i]->d_name), *path = NULL;
    if (folder && read_ref(folder, commit, sizeof commit)) path = text("%s/snapshots/%s", folder, commit);
    if (path) see(user, path);
    free(path), free(folder), free(entries[i]);
  }
  if (n >= 0) free(entries);
  free(cache);
}
