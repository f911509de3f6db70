/* See cache.h. */
#include "pull/cache.h"

#include "pull/progress_bar.h"
#include "system/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LONG_PATH = PATH_MAX + 1200 };

static dt_status fail(dt_error *err, const char *path) { return dt_fail(err, DT_EIO, "%s: %s", path, strerror(errno)); }

/* Makes all folders before the last '/' of a path. */
static bool make_folders(const char *path) {
  char folder[LONG_PATH];
  snprintf(folder, sizeof folder, "%s", path);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0777) && errno != EEXIST) return false;
    *slash = '/';
  }
  return true;
}

static void blob_path(const cache *c, const char *hash, const char *end, char out[LONG_PATH]) {
  snprintf(out, LONG_PATH, "%s/blobs/%s%s", c->folder, hash, end);
}

dt_status cache_open(const char *root, const char *id, const char *commit, cache *out, dt_error *err) {
  char below[LONG_PATH];
  const char *name = strchr(id, '/');
  int n = snprintf(out->folder, sizeof out->folder, "%s/models--%.*s--%s", root, (int)(name - id), id, name + 1);
  snprintf(out->root, sizeof out->root, "%s", root);
  snprintf(out->commit, sizeof out->commit, "%s", commit);
  if (n >= PATH_MAX - 200) return dt_fail(err, DT_EINPUT, "%.100s...: the path of the cache is too long", root);
  static const char *const parts[] = {"blobs/", "refs/", "snapshots/"};
  for (int i = 0; i < 3; i++) {
    snprintf(below, sizeof below, "%s/%s", out->folder, parts[i]);
    if (!make_folders(below)) return fail(err, below);
  }
  return DT_OK;
}

static int64_t size_of(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

bool cache_holds(const cache *c, const char *hash, int64_t size) {
  char path[LONG_PATH];
  blob_path(c, hash, "", path);
  return size_of(path) == size;
}

int64_t cache_have(const cache *c, const char *hash, int64_t size) {
  char path[LONG_PATH];
  if (cache_holds(c, hash, size)) return size;
  blob_path(c, hash, ".incomplete", path);
  int64_t part = size_of(path);
  return part > 0 && part <= size ? part : 0;
}

dt_status cache_check_room(const cache *c, int64_t bytes, dt_error *err) {
  struct statvfs info;
  if (statvfs(c->folder, &info)) return DT_OK; /* if there is no room, writing reports it */
  char all[SIZE_TEXT], free_bytes[SIZE_TEXT];
  int64_t room = (int64_t)info.f_bavail * (int64_t)info.f_frsize;
  if (room >= bytes) return DT_OK;
  return dt_fail(err, DT_EIO, "%s: the download needs %s, but only %s are free", c->root, size_text(bytes, all),
                 size_text(room, free_bytes));
}

/* ---- one process at a time --------------------------------------------------------------------------------------- */

dt_status cache_lock(const cache *c, const char *hash, void (*waits)(void *user), void *user, int *lock,
                     dt_error *err) {
  char path[LONG_PATH];
  snprintf(path, sizeof path, "%s/.locks%s/%s.lock", c->root, strrchr(c->folder, '/'), hash);
  *lock = make_folders(path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (*lock < 0) return fail(err, path);
  if (os_lock(*lock, false)) return DT_OK;
  waits(user);
  if (os_lock(*lock, true)) return DT_OK;
  dt_status status = fail(err, path);
  close(*lock);
  return status;
}

void cache_unlock(int lock) { close(lock); }

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

dt_status cache_begin(const cache *c, const char *hash, int *fd, dt_error *err) {
  char path[LONG_PATH];
  blob_path(c, hash, ".incomplete", path);
  *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  return *fd < 0 ? fail(err, path) : DT_OK;
}

dt_status cache_finish(const cache *c, const char *hash, int fd, dt_error *err) {
  char part[LONG_PATH], whole[LONG_PATH];
  blob_path(c, hash, ".incomplete", part);
  blob_path(c, hash, "", whole);
  return fsync(fd) || rename(part, whole) ? fail(err, part) : DT_OK;
}

void cache_drop(const cache *c, const char *hash) {
  char path[LONG_PATH];
  blob_path(c, hash, ".incomplete", path);
  unlink(path);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

dt_status cache_link(const cache *c, const char *name, const char *hash, dt_error *err) {
  char path[LONG_PATH], fresh[LONG_PATH + 32], target[1200] = "../../", seen[1200];
  int n = snprintf(path, sizeof path, "%s/snapshots/%s/%s", c->folder, c->commit, name);
  if (n >= LONG_PATH) return dt_fail(err, DT_EIO, "%.100s...: the path is too long", path);
  for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) strcat(target, "../");
  snprintf(target + strlen(target), sizeof target - strlen(target), "blobs/%s", hash);
  ssize_t there = readlink(path, seen, sizeof seen);
  if (there == (ssize_t)strlen(target) && memcmp(seen, target, (size_t)there) == 0) return DT_OK;
  snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
  if (!make_folders(path) || symlink(target, fresh)) return fail(err, path);
  if (rename(fresh, path) == 0) return DT_OK;
  dt_status status = fail(err, path);
  unlink(fresh);
  return status;
}

dt_status cache_name_commit(const cache *c, dt_error *err) {
  char path[LONG_PATH], fresh[LONG_PATH + 32];
  snprintf(path, sizeof path, "%s/refs/main", c->folder);
  snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
  FILE *file = fopen(fresh, "w");
  bool ok = file && fputs(c->commit, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (file && fclose(file)) ok = false;
  if (ok && rename(fresh, path) == 0) return DT_OK;
  dt_status status = fail(err, path);
  unlink(fresh);
  return status;
}
