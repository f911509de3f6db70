/* Downloads one file of a repository into the cache. */
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

/* Asks the server for the hash and size of the file at f->url. */
dt_status bring_facts(http *h, wanted_file *f, dt_error *err);

/* Downloads the file's blob, continuing after an interrupted download, and links the file's name to it. After a broken
 * connection it tries again, as long as each connection transfers at least one megabyte. */
dt_status bring_file(http *h, const cache *c, const wanted_file *f, dt_error *err);

/* Returns DT_OK, or fails with a message for the HTTP status of an answer. `what` names what was requested. */
dt_status bring_status(long status, const char *what, dt_error *err);

#endif
