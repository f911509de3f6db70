/* Finds models by name: see hub.h. Layout of the cache: models--ORG--NAME/refs/main contains the name of a folder in
 * models--ORG--NAME/snapshots. */
#include "models/hub.h"

#include "model/gguf_name.h"
#include "models/models_in.h"
#include "models/named.h"
#include "system/asprintf.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "models--"

static const char *set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value ? value : NULL;
}

/* Formats a malloc'd string; NULL: out of memory. */
static char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *format, ...) {
  char *out;
  va_list args;
  va_start(args, format);
  if (dt_vasprintf(&out, format, args) < 0) out = NULL;
  va_end(args);
  return out;
}

/* Returns the cache's folder, found as huggingface_hub finds it. */
char *hub_cache(void) {
  if (set("HF_HUB_CACHE")) return text("%s", set("HF_HUB_CACHE"));
  if (set("HF_HOME")) return text("%s/hub", set("HF_HOME"));
  if (set("XDG_CACHE_HOME")) return text("%s/huggingface/hub", set("XDG_CACHE_HOME"));
  return text("%s/.cache/huggingface/hub", set("HOME") ? set("HOME") : "");
}

char *dtl_hub_folder(void) { return hub_cache(); }

/* Returns the length of the part of an id that begins here; 0: it is not a valid part. */
static size_t part_length(const char *part) {
  size_t n = strspn(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");
  return part[0] != '.' && (part[n] == '/' || part[n] == ':' || !part[n]) ? n : 0;
}

bool hub_parse(const char *name, hub_id *out) {
  size_t org = part_length(name), model = org && name[org] == '/' ? part_length(name + org + 1) : 0,
         id = org + 1 + model;
  if (!model) return false;
  for (const char *at = name + id; *at == '/'; at += 1 + part_length(at + 1))
    if (!part_length(at + 1) || at[1 + part_length(at + 1)] == ':') return false;
  *out = (hub_id){.id = strndup(name, id)};
  if (name[id] == '/') out->file = name + id + 1;
  if (name[id] == ':') out->spec = name + id + 1;
  return out->id;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns whether a name is a path: its first folder exists. */
static bool is_meant_as_path(const char *name) {
  char *first = strndup(name, strcspn(name, "/"));
  bool path = first && is_folder(first);
  free(first);
  return path;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

char *hub_folder(const char *id) {
  char *cache = hub_cache();
  int org = (int)strcspn(id, "/");
  char *folder = cache ? text("%s/" PREFIX "%.*s--%s", cache, org, id, id + org + 1) : NULL;
  free(cache);
  return folder;
}

/* refs/main contains one word. */
char *hub_snapshot(const char *folder) {
  char *path = text("%s/refs/main", folder), commit[128];
  FILE *file = path ? fopen(path, "r") : NULL;
  bool ok = file && fgets(commit, sizeof commit, file);
  if (file) fclose(file);
  free(path);
  if (ok) commit[strcspn(commit, " \r\n")] = '\0';
  ok = ok && part_length(commit) && part_length(commit) == strlen(commit);
  return ok ? text("%s/snapshots/%s", folder, commit) : NULL;
}

/* Adds ", PREFIXNAME" to a list, which ends in "..." when it is full. */
static void list(char *out, size_t size, const char *prefix, const char *name) {
  size_t n = strlen(out);
  if (n + strlen(prefix) + strlen(name) + 8 < size)
    snprintf(out + n, size - n, "%s%s%s", n ? ", " : "", prefix, name);
  else if (n >= 3 && n + 6 < size && strcmp(out + n - 3, "...") != 0)
    strcat(out, ", ...");
}

dt_status hub_gguf(const char *snapshot, const char *id, const char *spec, char **path, dt_error *err) {
  int n, fit = 0, files = 0;
  char **names = models_in(snapshot, HUB_LEVELS, &n), prefix[256], listed[300] = "";
  *path = NULL;
  snprintf(prefix, sizeof prefix, "%s:", id);
  for (int i = 0; i < n; i++) {
    if (!gguf_is_name(names[i])) continue;
    files++;
    list(listed, sizeof listed, prefix, names[i]);
    if ((spec && !gguf_answers(names[i], spec)) || fit++) continue;
    *path = strdup(names[i]);
  }
  models_in_free(names, n);
  if (fit == 1) return DT_OK;
  free(*path);
  *path = NULL;
  if (spec && fit == 0 && files)
    return dtl_fail(err, DT_EINPUT, "%s has no file %.80s here: run dtrun pull %s:%.80s, or name one of: %s", id, spec,
                    id, spec, listed);
  if (spec && fit == 0)
    return dtl_fail(err, DT_EINPUT, "%s has no .gguf file here: run dtrun pull %s:%.80s", id, id, spec);
  if (files) return dtl_fail(err, DT_EINPUT, "%d files of %s match: name one of them: %s", fit, id, listed);
  return DT_OK;
}

/* Finds the model of an id. DT_EINPUT: the message names the part that is missing. */
static dt_status cached(const char *name, const hub_id *id, char **path, dt_error *err) {
  char *folder = hub_folder(id->id), *snapshot = folder ? hub_snapshot(folder) : NULL, *file = NULL;
  char *config = snapshot ? text("%s/config.json", snapshot) : NULL, *cache = hub_cache();
  bool is_whole = snapshot && is_folder(snapshot), is_model = config && access(config, F_OK) == 0;
  dt_status status = DT_OK;
  *path = NULL;
  if (is_whole && id->file)
    *path = text("%s/%s", snapshot, id->file);
  else if (is_whole && !id->spec && is_model)
    *path = strdup(snapshot);
  else if (is_whole)
    status = hub_gguf(snapshot, id->id, id->spec, &file, err);
  if (file) *path = text("%s/%s", snapshot, file);
  if (*path && access(*path, F_OK) != 0) free(*path), *path = NULL;
  const char *one = id->spec ? id->spec : id->file;
  if (!status && !*path)
    status = dtl_fail(err, DT_EINPUT, "%s is neither here nor in %s: dtrun pull %s%s%s downloads it", name,
                      cache ? cache : "the cache", id->id, one ? ":" : "", one ? one : "");
  free(folder), free(snapshot), free(config), free(cache), free(file);
  return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Finds the model in a folder without config.json; if there is none, *path is the folder itself. Takes ownership of
 * folder. *path NULL: out of memory. */
static dt_status inside(char *folder, char **path, dt_error *err) {
  char *config = text("%s/config.json", folder), listed[300] = "", prefix[300];
  int n;
  bool model = config && access(config, F_OK) == 0;
  dt_status status = DT_OK;
  *path = folder;
  free(config);
  if (model) return DT_OK;
  char **names = models_in(folder, 0, &n);
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') folder[--length] = '\0';
  snprintf(prefix, sizeof prefix, "%s/", folder);
  for (int i = 0; i < n; i++) list(listed, sizeof listed, prefix, names[i]);
  bool one = n == 1 && gguf_is_name(names[0]);
  if (one)
    *path = text("%s/%s", folder, names[0]);
  else if (n > 0) {
    status = dtl_fail(err, DT_EINPUT, "%s is not a model but a folder with %d models: name one of them: %s", folder, n,
                      listed);
    *path = NULL;
  }
  models_in_free(names, n);
  if (*path != folder) free(folder);
  return status;
}

/* Reports that a word is not the name of a model here. */
static dt_status unknown(const char *name, dt_error *err) {
  int n;
  named_model *all = named_all(&n);
  const char **names = calloc((size_t)n + 1, sizeof *names), *near = NULL;
  for (int i = 0; names && i < n; i++) names[i] = all[i].name;
  bool guess = names && dtl_near(name, strlen(name), names, n, &near, 1);
  dtl_fail(err, DT_EINPUT,
           "no model '%.80s': %s%s%sdtrun ls lists the models that are here, dtrun pull downloads others", name,
           guess ? "did you mean " : "", guess ? near : "", guess ? "? " : "");
  free(names), free(all);
  return DT_EINPUT;
}

dt_status hub_path(const char *name, char **path, dt_error *err) {
  hub_id id = {0};
  bool known = false, here = access(name, F_OK) == 0;
  dt_status status = DT_OK;
  *path = here ? NULL : named_path(name, &known);
  if (*path) return DT_OK;
  if (known) return dtl_fail(err, DT_EINPUT, "%s is not here: dtrun pull %s downloads it", name, name);
  if (!here && !is_meant_as_path(name) && hub_parse(name, &id)) {
    status = cached(name, &id, path, err);
    free(id.id);
    return status;
  }
  if (!here && !strchr(name, '/') && !gguf_is_name(name)) return unknown(name, err);
  *path = strdup(name);
  if (*path && is_folder(*path)) status = inside(*path, path, err);
  return status || *path ? status : dtl_fail_memory(err, "a path");
}

bool dtl_is_model_name(const char *word) {
  hub_id id = {0};
  bool known = false;
  if (!word || access(word, F_OK) == 0) return false;
  char *path = named_path(word, &known);
  bool is = path || known || (!is_meant_as_path(word) && hub_parse(word, &id));
  free(path), free(id.id);
  return is;
}

static int is_model(const struct dirent *entry) { return strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0; }

void hub_each(void (*see)(void *user, const char *id, const char *folder), void *user) {
  struct dirent **entries;
  char *cache = hub_cache();
  int n = cache ? scandir(cache, &entries, is_model, alphasort) : -1;
  for (int i = 0; i < n; i++) {
    const char *org = entries[i]->d_name + strlen(PREFIX), *border = strstr(org, "--");
    char *id = border ? text("%.*s/%s", (int)(border - org), org, border + 2) : NULL;
    char *folder = text("%s/%s", cache, entries[i]->d_name);
    if (id && folder) see(user, id, folder);
    free(folder), free(id), free(entries[i]);
  }
  if (n >= 0) free(entries);
  free(cache);
}
