/* Removes pulled models: see dtl_remove_model in host.h. Links are removed, never followed. */
#include "model/gguf_name.h"
#include "models/hub.h"
#include "models/models_in.h"
#include "models/named.h"
#include "system/asprintf.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FOLDERS 16 /* maximum number of folders that nftw keeps open */

/* The bytes that nftw has counted; static since nftw passes no argument to its function. */
static _Thread_local uint64_t counted;

static int count(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)path, (void)at;
  if (kind == FTW_F) counted += (uint64_t)info->st_size;
  return 0;
}

static int take_away(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)info, (void)kind, (void)at;
  return remove(path);
}

static uint64_t bytes_below(const char *path) {
  counted = 0;
  nftw(path, count, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT);
  return counted;
}

/* Removes a file or folder, and a second one (or NULL) if that exists. */
static dt_status take(const char *path, const char *second, dt_error *err) {
  if (nftw(path, take_away, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT | FTW_DEPTH))
    return dtl_fail(err, DT_EDEVICE, "%s: not all of it can be removed: %s", path, strerror(errno));
  if (second && nftw(second, take_away, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT | FTW_DEPTH) && errno != ENOENT)
    return dtl_fail(err, DT_EDEVICE, "%s: not all of it can be removed: %s", second, strerror(errno));
  return DT_OK;
}

typedef struct {
  bool (*agree)(void *user, const char *path, uint64_t bytes);
  void *user;
  bool *removed;
} asked;

static dt_status ask_and_take(const asked *a, const char *path, const char *second, dt_error *err) {
  if (!a->agree(a->user, path, bytes_below(second ? second : path) + (second ? bytes_below(path) : 0))) return DT_OK;
  dt_status status = take(path, second, err);
  *a->removed = !status;
  return status;
}

/* Returns CACHE/.locks/models--ORG--NAME for CACHE/models--ORG--NAME; NULL: out of memory. */
static char *locks_of(const char *folder) {
  char *locks, *slash = strrchr(folder, '/');
  return dt_asprintf(&locks, "%.*s/.locks%s", (int)(slash - folder), folder, slash) < 0 ? NULL : locks;
}

/* Finds the file in folder/blobs to which a link points, in blob[PATH_MAX]; false: there is none. */
static bool find_blob(const char *folder, const char *link, char *blob) {
  char blobs[PATH_MAX + 8], real[PATH_MAX];
  if (!realpath(folder, real) || !realpath(link, blob)) return false;
  int n = snprintf(blobs, sizeof blobs, "%s/blobs/", real);
  return strncmp(blob, blobs, (size_t)n) == 0;
}

/* Returns whether this is the last file, with which everything else is removed. */
static bool is_alone(const char *snapshot) {
  int n;
  char config[PATH_MAX], **names = models_in(snapshot, HUB_LEVELS, &n);
  models_in_free(names, n);
  snprintf(config, sizeof config, "%s/config.json", snapshot);
  bool model = access(config, F_OK) == 0;
  return n == 1 && !model;
}

/* Removes a file of a snapshot, or all parts of a model whose first part it is, together with the files that they link
 * to. */
static dt_status take_parts(const asked *a, const char *folder, const char *first, dt_error *err) {
  char part[PATH_MAX], blob[PATH_MAX];
  int number, count = 1;
  const bool several = gguf_part(first, &number, &count);
  uint64_t bytes = 0;
  dt_status status = DT_OK;
  for (int taking = 0; taking < 2 && !status; taking++) {
    if (taking && !a->agree(a->user, first, bytes)) return DT_OK;
    for (int i = 1; i <= count && !status; i++) {
      if (!several) snprintf(part, sizeof part, "%s", first);
      if (several && !gguf_part_path(first, i, part, sizeof part)) break;
      const char *linked = find_blob(folder, part, blob) ? blob : NULL;
      if (taking)
        status = access(part, F_OK) == 0 ? take(part, linked, err) : DT_OK;
      else
        bytes += bytes_below(part) + (linked ? bytes_below(linked) : 0);
    }
  }
  *a->removed = !status;
  return status;
}

static dt_status remove_file(const asked *a, const hub_id *id, const char *folder, const char *locks, dt_error *err) {
  char *snapshot = hub_snapshot(folder), *file = NULL, *path = NULL;
  dt_status status = snapshot ? hub_gguf(snapshot, id->id, id->spec, &file, err) : DT_OK;
  if (file && dt_asprintf(&path, "%s/%s", snapshot, file) < 0) path = NULL;
  if (path && is_alone(snapshot))
    status = ask_and_take(a, folder, locks, err);
  else if (path)
    status = take_parts(a, folder, path, err);
  else if (!status)
    status =
        dtl_fail(err, DT_EINPUT, "%s: its download is incomplete; dtrun rm %s removes what is here", id->id, id->id);
  free(path), free(file), free(snapshot);
  return status;
}

static dt_status remove_cached(const asked *a, const hub_id *id, dt_error *err) {
  struct stat info;
  char *folder = hub_folder(id->id), *locks = folder ? locks_of(folder) : NULL, *cache = hub_cache();
  dt_status status;
  if (!locks || !cache)
    status = dtl_fail_memory(err, "a path");
  else if (lstat(folder, &info) != 0)
    status = dtl_fail(err, DT_EINPUT, "%s is not in %s; dtrun ls lists the models that are here", id->id, cache);
  else if (id->spec)
    status = remove_file(a, id, folder, locks, err);
  else
    status = ask_and_take(a, folder, locks, err);
  free(folder), free(locks), free(cache);
  return status;
}

dt_status dtl_remove_model(const char *name, bool (*agree)(void *user, const char *path, uint64_t bytes), void *user,
                           bool *removed, dt_error *err) {
  NEED(name, "name");
  NEED(agree, "agree");
  NEED(removed, "removed");
  asked a = {agree, user, removed};
  hub_id id;
  bool known;
  dt_status status;
  *removed = false;
  char *path = named_path(name, &known);
  if (known && path)
    status = ask_and_take(&a, path, NULL, err);
  else if (known)
    status = dtl_fail(err, DT_EINPUT, "%s is not here; dtrun ls lists the models that are", name);
  else if (path)
    status = dtl_fail(err, DT_EINPUT, "%s is one of dtrun's own models, which dtrun does not remove", name);
  else if (hub_parse(name, &id)) {
    if (id.file)
      status = dtl_fail(err, DT_EINPUT, "%s: to remove a file of %s, run dtrun rm %s:%s", name, id.id, id.id, id.file);
    else
      status = remove_cached(&a, &id, err);
    free(id.id);
  } else
    status = dtl_fail(err, DT_EINPUT, "'%.200s' is not a name that dtrun ls shows", name);
  free(path);
  return status;
}
