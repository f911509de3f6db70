/* One file of a repository into the cache. */
#ifndef PULL_BRING_H
#define PULL_BRING_H

#include "pull/cache.h"
#include "pull/file_hash.h"
#include "pull/http_client.h"

typedef struct {
  const char *name;
  char url[HTTP_URL];
  char hash[FILE_HASH];
  int64_t size;
} wanted_file;

/* Asks the server for hash and size of the file at f->url. */
dt_status bring_facts(http *h, wanted_file *f, dt_error *err);

/* Downloads its blob, from the end of an earlier, broken pull, and links its name to it. A broken connection is tried
 * again as long as each brings a megabyte more. */
dt_status bring_file(http *h, const cache *c, const wanted_file *f, dt_error *err);

/* DT_OK, or the failure that an answer's status means for `what` of the model. */
dt_status bring_status(long status, const char *what, dt_error *err);

#endif
