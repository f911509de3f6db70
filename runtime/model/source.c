/* Files and memory that weights are read from: see source.h. */
#include "model/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
dt_status source_open(const char *path, dt_source *out, dt_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  dt_status status = DT_OK;
  if (fd < 0 || fstat(fd, &info) != 0)
    status = errno == ENOENT ? dt_fail(err, DT_EINPUT, "%s: no such file", path)
                             : dt_fail(err, DT_EIO, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = dt_fail(err, DT_EINPUT, "%s: not a regular file", path);
  if (status == DT_OK)
    *out = (dt_source){path, (uint64_t)info.st_size, fd, NULL, NULL};
  else if (fd >= 0)
    close(fd);
  return status;
}

void source_close(dt_source *source) {
  if (source->fd >= 0) close(source->fd);
}

static dt_status fail_short(const dt_source *source, uint64_t end, uint64_t size, dt_error *err) {
  return dt_fail(err, DT_EINPUT,
                 "%s: found %" PRIu64 " bytes, expected at least %" PRIu64 ": it was truncated while it was read",
                 source->name, size, end);
}

static dt_status read_bytes(const dt_source *source, uint64_t offset, void *to, size_t bytes, dt_error *err) {
  uint64_t end = offset + bytes;
  if (source->fd < 0) {
    if (end > source->size || end < offset) return fail_short(source, end, source->size, err);
    if (bytes) memcpy(to, (const char *)source->bytes + offset, bytes);
    return DT_OK;
  }
  for (char *at = to; offset < end;) {
    ssize_t n = pread(source->fd, at, (size_t)(end - offset), (off_t)offset);
    if (n == 0) return fail_short(source, end, offset, err);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return dt_fail(err, DT_EIO, "%s: cannot be read: %s", source->name, strerror(errno));
    at += n, offset += (uint64_t)n;
  }
  return DT_OK;
}

dt_status source_read(const dt_source *source, uint64_t offset, void *to, size_t bytes, dt_error *err) {
  dt_status status = read_bytes(source, offset, to, bytes, err);
  if (status == DT_OK && source->watch) source->watch->look(source->watch->context, source, offset, to, bytes);
  return status;
}
