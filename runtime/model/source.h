/* A source of weights: a file, or memory. Reading copies bytes (there is no memory mapping), so a file that is
 * truncated meanwhile gives an error and not a signal. */
#ifndef DT_SOURCE_H
#define DT_SOURCE_H

#include "system/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dt_source dt_source;

/* A watcher of reads: each reading thread calls it with the bytes it has read. */
typedef struct {
  void (*look)(void *context, const dt_source *, uint64_t offset, const void *bytes, size_t n);
  void *context;
} source_watch;

struct dt_source {
  const char *name;          /* the file's path, for messages */
  uint64_t size;             /* bytes at the time of opening */
  int fd;                    /* of the file; -1: the source is memory */
  const void *bytes;         /* the memory, which belongs to the caller */
  const source_watch *watch; /* or NULL */
};

static inline dt_source source_of_memory(const char *name, const void *bytes, uint64_t size) {
  return (dt_source){name, size, -1, bytes, NULL};
}

/* Opens a regular file. `path` must stay valid, since it becomes the name. Close it with source_close. DT_EINPUT: there
 * is no such file. */
dt_status source_open(const char *path, dt_source *out, dt_error *err);
void source_close(dt_source *source); /* memory: does nothing */

/* Copies `bytes` bytes from `offset` on to `to`. Any number of threads may read at the same time. DT_EINPUT: the source
 * ends before. DT_EIO: it cannot be read. Both messages name the source. */
dt_status source_read(const dt_source *source, uint64_t offset, void *to, size_t bytes, dt_error *err);

#endif
