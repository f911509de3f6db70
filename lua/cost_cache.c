/* Where tables of costs are kept between runs, and what they depend on. A table is served only to the very program, machine
 * and models it was measured with. */
#include "costs.h"
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)

static uint64_t hash(uint64_t h, const void *bytes, size_t n) { /* FNV-1a */
  for (const unsigned char *b = bytes; n > 0; n--) h = (h ^ *b++) * 0x100000001b3u;
  return h;
}

static uint64_t hash_file(uint64_t h, const char *path) {
  struct stat st;
  if (stat(path, &st)) return h;
  int64_t what[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
  return hash(h, what, sizeof what);
}

/* Names, sizes and dates of the files of a model. */
static uint64_t model_identity(const char *folder) {
  uint64_t h = 0xcbf29ce484222325u;
  struct dirent **entries;
  int n = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char *path;
    if (entries[i]->d_name[0] != '.' && asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
      h = hash_file(hash(h, entries[i]->d_name, strlen(entries[i]->d_name)), path);
      free(path);
    }
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  return h;
}

/* "model name" of the first processor. */
static void processor_name(char *name, size_t size) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(name, size, "unknown processor");
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) || !value) continue;
    dtl_clean(name, size, value + 2, strcspn(value + 2, "\n"));
    break;
  }
  if (file) fclose(file);
}

/* $XDG_CACHE_HOME/dtrun or ~/.cache/dtrun: malloc'd, NULL where neither is set. */
static char *cache_folder(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char *folder = NULL;
  if (cache && *cache == '/') {
    if (asprintf(&folder, "%s/dtrun", cache) < 0) folder = NULL;
  } else if (home && *home == '/') {
    if (asprintf(&folder, "%s/.cache/dtrun", home) < 0) folder = NULL;
  }
  return folder;
}

bool costs_find(dt_pair *pair, int context, costs_place *place, dtl_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  struct utsname machine;
  char processor[128], *folder = cache_folder(), *what = NULL;
  char *target = realpath(info.target.path, NULL), *draft = info.draft.path ? realpath(info.draft.path, NULL) : NULL;
  processor_name(processor, sizeof processor);
  uname(&machine);
  *place = (costs_place){0};
  bool ok =
      asprintf(&what, "%s, %s, %s, %d threads, context %d, %zu bytes of weights, target %s, draft %s", machine.nodename,
               processor, info.backend, info.threads, context, info.weight_bytes,
               /* tells how the weights are held: --draft-dtype */ target ? target : "-", draft ? draft : "-") >= 0;
  if (ok)
    ok = asprintf(&place->key, "dtrun %s %016" PRIx64 ", %s, %016" PRIx64 " %016" PRIx64, dt_version(),
                  hash_file(0, "/proc/self/exe"), what, target ? model_identity(target) : 0,
                  draft ? model_identity(draft) : 0) >= 0;
  if (ok && folder && target) /* a scripted pair has no folder and is measured anew each time */
    ok = asprintf(&place->path, "%s/costs-%016" PRIx64 ".json", folder,
                  hash(0xcbf29ce484222325u, what, strlen(what))) >= 0;
  free(what), free(folder), free(target), free(draft);
  return ok || dtl_fail(err, DTL_DEVICE, "out of memory: the place of a table of costs");
}

void costs_leave(costs_place *place) {
  free(place->key), free(place->path);
  *place = (costs_place){0};
}

const char *costs_load(const costs_place *place, dtl_costs *costs) {
  if (!place->path || access(place->path, F_OK)) return "";
  dtl_error err;
  size_t len;
  char *text = dtl_read_file("table of costs", place->path, FILE_MAX, &len, &err);
  if (!text) return "it cannot be read";
  const char *wrong = costs_parse(text, place->key, costs);
  free(text);
  return wrong;
}

/* Makes the folders of a path, as far as they are missing. */
static bool make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    bool made = !mkdir(path, 0777) || errno == EEXIST;
    *slash = '/';
    if (!made) return false;
  }
  return true;
}

const char *costs_store(const costs_place *place, const dtl_costs *costs) {
  if (!place->path) return NULL;
  char *text = costs_json(costs, place->key), *temporary = NULL;
  if (!text || asprintf(&temporary, "%s.%ld", place->path, (long)getpid()) < 0) {
    free(text);
    return strerror(ENOMEM);
  }
  errno = 0;
  FILE *file = make_folders(place->path) ? fopen(temporary, "w") : NULL;
  bool ok = file && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  if (file) ok = !fclose(file) && ok;
  ok = ok && !rename(temporary, place->path);
  int code = errno;
  if (!ok && file) unlink(temporary);
  free(text), free(temporary);
  return ok ? NULL : strerror(code);
}
