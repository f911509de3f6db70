/* Where tables of costs are kept between runs, and what they depend on. A table is served only to the very program, machine
 * and models it was measured with. */
#include "costs.h"
#include "files.h"
#include "machine.h"
#include "user_files.h"

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

static uint64_t hash_file(uint64_t h, const char *path) {
  struct stat st;
  if (stat(path, &st)) return h;
  int64_t what[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
  return user_hash(h, what, sizeof what);
}

/* Names, sizes and dates of the files of a model. */
static uint64_t model_identity(const char *folder) {
  uint64_t h = USER_HASH;
  struct dirent **entries;
  int n = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char *path;
    if (entries[i]->d_name[0] != '.' && asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
      h = hash_file(user_hash(h, entries[i]->d_name, strlen(entries[i]->d_name)), path);
      free(path);
    }
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  return h;
}

bool costs_find(dt_pair *pair, int context, int batch, costs_place *place, dtl_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  struct utsname machine;
  char processor[MACHINE_NAME], relative[64], *what = NULL;
  char *target = realpath(info.target.path, NULL), *draft = info.draft.path ? realpath(info.draft.path, NULL) : NULL;
  machine_name(processor, sizeof processor);
  uname(&machine);
  *place = (costs_place){0};
  bool ok = asprintf(&what, "%s, %s, %s, %d threads, context %d, %d at once, caches in %s, target %s, draft %s in %s",
                     machine.nodename, processor, info.backend, info.threads, context, batch, info.cache_dtype,
                     target ? target : "-", draft ? draft : "-", info.draft_dtype ? info.draft_dtype : "-") >= 0;
  if (ok)
    ok = asprintf(&place->key, "dtrun %s %016" PRIx64 ", %s, %016" PRIx64 " %016" PRIx64, dt_version(),
                  hash_file(0, "/proc/self/exe"), what, target ? model_identity(target) : 0,
                  draft ? model_identity(draft) : 0) >= 0;
  if (ok && target) { /* a scripted pair has no folder and is measured anew each time */
    snprintf(relative, sizeof relative, "costs-%016" PRIx64 ".json", user_hash(USER_HASH, what, strlen(what)));
    place->path = user_path("XDG_CACHE_HOME", ".cache", relative);
  }
  free(what), free(target), free(draft);
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

const char *costs_store(const costs_place *place, const dtl_costs *costs) {
  if (!place->path) return NULL;
  char *text = costs_json(costs, place->key);
  if (!text) return strerror(ENOMEM);
  const char *wrong = user_store(place->path, text) ? NULL : strerror(errno);
  free(text);
  return wrong;
}
