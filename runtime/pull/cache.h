/* Hugging Face's cache, as huggingface_hub lays it out: models--ORG--NAME/blobs/HASH, snapshots/COMMIT/FILE ->
 * ../../blobs/HASH, refs/main, which names the commit and is written last; and .locks/models--ORG--NAME/HASH.lock
 * beside it. */
#ifndef PULL_CACHE_H
#define PULL_CACHE_H

#include "system/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  char root[PATH_MAX];   /* the cache */
  char folder[PATH_MAX]; /* of the model */
  char commit[80];
} cache;

/* Makes the folders. The id and the commit are as listing.h has them. */
dt_status cache_open(const char *root, const char *id, const char *commit, cache *out, dt_error *err);

/* Whether that blob is here, whole. */
bool cache_holds(const cache *c, const char *hash, int64_t size);
/* Bytes of it that are here: all, or those of an earlier, broken pull, which may be all too. */
int64_t cache_have(const cache *c, const char *hash, int64_t size);

/* DT_EIO: fewer than `bytes` are free where the cache lies. */
dt_status cache_check_room(const cache *c, int64_t bytes, dt_error *err);

/* Waits until nobody else brings that blob; waits(user) is called if somebody does. The lock ends with cache_unlock. */
dt_status cache_lock(const cache *c, const char *hash, void (*waits)(void *user), void *user, int *lock, dt_error *err);
void cache_unlock(int lock);

/* Opens HASH.incomplete, the blob's bytes so far, to add more. */
dt_status cache_begin(const cache *c, const char *hash, int *fd, dt_error *err);
/* Renames a complete blob. */
dt_status cache_finish(const cache *c, const char *hash, int fd, dt_error *err);
/* Removes a wrong blob. */
void cache_drop(const cache *c, const char *hash);

/* The file's name becomes a link to the blob. */
dt_status cache_link(const cache *c, const char *name, const char *hash, dt_error *err);

/* From now on the model is this commit. */
dt_status cache_name_commit(const cache *c, dt_error *err);

#endif
