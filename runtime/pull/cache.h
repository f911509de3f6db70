/* Writes Hugging Face's cache in the layout of huggingface_hub. In models--ORG--NAME there are blobs/HASH,
 * snapshots/COMMIT/FILE -> ../../blobs/HASH, and refs/main, which names the commit and is written last. Locks are in
 * .locks/models--ORG--NAME/HASH.lock. */
#ifndef PULL_CACHE_H
#define PULL_CACHE_H

#include "system/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  char root[PATH_MAX];   /* the cache's folder */
  char folder[PATH_MAX]; /* the model's folder */
  char commit[80];
} cache;

/* Makes the folders. id and commit are as in listing.h. */
dt_status cache_open(const char *root, const char *id, const char *commit, cache *out, dt_error *err);

/* Returns whether the complete blob is in the cache. */
bool cache_holds(const cache *c, const char *hash, int64_t size);
/* Returns how many bytes of the blob are in the cache: all of them, or those of an interrupted download (which may also
 * be all). */
int64_t cache_have(const cache *c, const char *hash, int64_t size);

/* Fails with DT_EIO if fewer than `bytes` bytes are free on the cache's disk. */
dt_status cache_check_room(const cache *c, int64_t bytes, dt_error *err);

/* Locks a blob, waiting until no other process downloads it; calls waits(user) before it waits. Release the lock with
 * cache_unlock. */
dt_status cache_lock(const cache *c, const char *hash, void (*waits)(void *user), void *user, int *lock, dt_error *err);
void cache_unlock(int lock);

/* Opens HASH.incomplete, which has the blob's bytes so far, to append more. */
dt_status cache_begin(const cache *c, const char *hash, int *fd, dt_error *err);
/* Gives a complete blob its final name. */
dt_status cache_finish(const cache *c, const char *hash, int fd, dt_error *err);
/* Removes a wrong blob. */
void cache_drop(const cache *c, const char *hash);

/* Makes the file's name a link to the blob. */
dt_status cache_link(const cache *c, const char *name, const char *hash, dt_error *err);

/* Writes refs/main: from now on the model is this commit. */
dt_status cache_name_commit(const cache *c, dt_error *err);

#endif
