/* Where tables of costs are kept between runs, and what they depend on. A table is served only to the very program, machine
 * and models it was measured with. */
#include "costs.h"
#include "files.h"
#include "hash.h"
#include "identity.h"
#include "machine.h"
#include "user_files.h"

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
#define DISTURBED_SECONDS                                                                                              \
  600 /* so long a table of a busy machine serves: not for ever, nor measured by each of many runs */

bool costs_find(dt_pair *pair, int context, int batch, costs_place *place, dtl_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  struct utsname machine;
  char processor[MACHINE_NAME], relative[64], *what = NULL;
  char *target = realpath(info.target.path, NULL), *draft = info.draft.path ? realpath(info.draft.path, NULL) : NULL;
  char build[DIGEST_TEXT], files[2][DIGEST_TEXT];
  identity_build(build), identity_model(target, files[0]), identity_model(draft, files[1]);
  machine_name(processor, sizeof processor);
  uname(&machine);
  *place = (costs_place){0};
  bool ok =
      asprintf(
          &what,
          "%s, %s, %s, %d threads, context %d, %d at once, caches in %s, target %s in %s, draft %s in %s, its ids %s",
          machine.nodename, processor, info.backend, info.threads, context, batch, info.cache_dtype,
          target ? target : "-", info.target_dtype, draft ? draft : "-", info.draft_dtype ? info.draft_dtype : "-",
          info.draft_vocab ? info.draft_vocab : "all") >= 0;
  if (ok)
    ok = asprintf(&place->key, "dtrun %s %s %s, %s, %s %s", dt_version(), identity_commit(), build, what, files[0],
                  files[1]) >= 0;
  if (ok && target) { /* a scripted pair has no folder and is measured anew each time */
    snprintf(relative, sizeof relative, "costs-%016" PRIx64 ".json", hash_bytes(HASH_START, what, strlen(what)));
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
  struct stat info;
  if (!wrong && costs->disturbed && !stat(place->path, &info) && time(NULL) - info.st_mtime > DISTURBED_SECONDS)
    return "the machine was busy when it was measured";
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
