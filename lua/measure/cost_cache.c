/* Where costs are kept between runs, and under which key: machine, models and their settings, but not the program.
 * Program and library therefore share them, and another build finds them. */
#include "files/files.h"
#include "files/identity.h"
#include "files/machine.h"
#include "files/user_files.h"
#include "measure/costs.h"
#include "system/asprintf.h"
#include "system/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)
#define DISTURBED_SECONDS 600 /* how long a table that was measured on a busy machine is used: enough for many runs */

/* The names of a pair's models: paths, or digests of their files. */
typedef struct {
  const char *target, *draft;
} model_names;

/* A draft that is a part of the target is identified by its path, which is its name. */
static const char *draft_name(const char *path, const char *name) { return dt_draft_is_own(path) ? path : name; }

/* Describes everything that times depend on, and `also`. malloc'd; NULL: out of memory. */
static char *describe(const dt_pair_info *info, const char *also, int batch, model_names name) {
  struct utsname machine;
  char processor[MACHINE_NAME], *what;
  machine_name(processor, sizeof processor);
  uname(&machine);
  int n = dt_asprintf(&what,
                      "%s, %s, %s, %d threads, %s, %d at once, caches in %s, activations of %s bits, target %s in %s, "
                      "draft %s in %s, its ids %s%s%s%s%s",
                      machine.nodename, processor, info->backend, info->threads, also, batch, info->cache_dtype,
                      info->activations ? info->activations : "32", name.target, info->target_dtype,
                      draft_name(info->draft.path, name.draft), info->draft_dtype ? info->draft_dtype : "-",
                      info->draft_vocab ? info->draft_vocab : "all", info->draft_output ? ", its output in " : "",
                      info->draft_output ? info->draft_output : "", info->draft_window ? ", its window " : "",
                      info->draft_window ? info->draft_window : "");
  return n < 0 ? NULL : what;
}

static char *real_path(const char *path) { return path ? realpath(path, NULL) : NULL; }

static const char *or_none(const char *path) { return path ? path : "-"; }

static char *path_of(const char *kind, const char *what) {
  char relative[64];
  snprintf(relative, sizeof relative, "%s-%016" PRIx64 ".json", kind, hash_bytes(HASH_START, what, strlen(what)));
  return user_path("XDG_CACHE_HOME", ".cache", relative);
}

dt_status costs_find(dt_pair *pair, int context, int batch, costs_place *place, dt_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  char *target = real_path(info.target.path), *draft = real_path(info.draft.path);
  char also[32], files[2][DIGEST_TEXT], *what;
  snprintf(also, sizeof also, "context %d", context);
  *place = (costs_place){0};
  what = describe(&info, also, batch, (model_names){or_none(target), or_none(draft)});
  identity_model(target, files[0]), identity_model(draft, files[1]);
  bool ok = what && dt_asprintf(&place->key, "%s, %s %s", what, files[0], files[1]) >= 0;
  if (ok && target) place->path = path_of("costs", what); /* a scripted pair has no files: it is measured each time */
  free(what), free(target), free(draft);
  return ok ? DT_OK : dtl_fail_memory(err, "the path of a table of costs");
}

dt_status costs_find_learned(dt_pair *pair, const char *way, int batch, costs_place *place, dt_error *err) {
  dt_pair_info info;
  char target[DIGEST_TEXT], draft[DIGEST_TEXT];
  dt_pair_describe(pair, &info);
  bool is_there = access(info.target.path, F_OK) == 0;
  identity_model(is_there ? info.target.path : NULL, target);
  identity_model(is_there ? info.draft.path : NULL, draft);
  *place = (costs_place){.key = describe(&info, way, batch, (model_names){target, draft})};
  if (place->key && is_there) place->path = path_of(batch ? "learned" : "ledger", place->key);
  return place->key ? DT_OK : dtl_fail_memory(err, "the path of learned costs");
}

void costs_leave(costs_place *place) {
  free(place->key), free(place->path);
  *place = (costs_place){0};
}

dt_status costs_read(const costs_place *place, char **text, dt_error *err) {
  size_t len;
  *text = NULL;
  if (!place->path || access(place->path, F_OK)) return DT_OK;
  return dtl_read_file("costs", place->path, FILE_MAX, text, &len, err);
}

const char *costs_write(const costs_place *place, const char *text) {
  if (!place->path) return NULL;
  return !text ? strerror(ENOMEM) : user_store(place->path, text) ? NULL : strerror(errno);
}

const char *costs_load(const costs_place *place, dtl_costs *costs) {
  char *text;
  dt_status status = costs_read(place, &text, NULL);
  if (status) return status == DT_ENOMEM ? COSTS_STARVED : "it cannot be read";
  if (!text) return "";
  const char *wrong = costs_parse(text, place->key, costs);
  free(text);
  struct stat info;
  if (!wrong && costs->disturbed && !stat(place->path, &info) && time(NULL) - info.st_mtime > DISTURBED_SECONDS)
    return "the machine was busy when it was measured";
  return wrong;
}

const char *costs_store(const costs_place *place, const dtl_costs *costs) {
  char *text = costs_json(costs, place->key);
  const char *wrong = costs_write(place, text);
  free(text);
  return wrong;
}
