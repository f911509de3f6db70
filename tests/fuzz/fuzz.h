/* Shared by the fuzz targets. A target is one function that must hold for any bytes; it aborts if a promise is
 * broken. */
#ifndef FUZZ_H
#define FUZZ_H

#include "system/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The path of a file in memory that contains these bytes until the next call. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t size) {
  static int fd = -1;
  static char path[32];
  if (fd < 0) fd = memfd_create("fuzz", 0);
  if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size)) abort(); /* pages stay */
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return path;
}

/* Checks that a message is one line that names the file. */
static inline void fuzz_check_message(const char *message, const char *file) {
  if (!strstr(message, file)) abort();
  for (const char *c = message; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7F) abort();
}

static inline void fuzz_check_failure(dt_status status, const dt_error *err, const char *file) {
  if (err->status != status || (status != DT_EINPUT && status != DT_ENOMEM)) abort();
  if (status == DT_EINPUT) fuzz_check_message(err->message, file);
}

#endif
