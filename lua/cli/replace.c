/* Writes a file next to the old one and renames it: see replace.h. */
#include "cli/replace.h"

#include "system/asprintf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes and closes a file; false, with errno set, if a byte may be lost. */
static bool write_and_close(FILE *file, const char *text) {
  bool ok = fputs(text, file) >= 0 && fflush(file) == 0;
  int error = errno;
  if (fclose(file) != 0 && ok) return false;
  errno = error;
  return ok;
}

static bool write_through(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  return file && write_and_close(file, text);
}

static bool write_beside(const char *path, mode_t mode, const char *text) {
  char *temporary;
  if (dt_asprintf(&temporary, "%s.XXXXXX", path) < 0) return false;
  int fd = mkstemp(temporary);
  FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
  bool ok = file && fchmod(fd, mode) == 0;
  if (file) ok = write_and_close(file, text) && ok;
  ok = ok && rename(temporary, path) == 0;
  if (!ok && fd >= 0) {
    int error = errno;
    unlink(temporary);
    errno = error;
  }
  free(temporary);
  return ok;
}

bool replace_file(const char *path, const char *text) {
  struct stat info;
  if (stat(path, &info) != 0) {
    mode_t mask = umask(0);
    umask(mask);
    return write_beside(path, 0666 & ~mask, text);
  }
  if (!S_ISREG(info.st_mode)) return write_through(path, text);
  char *real = realpath(path, NULL);
  bool ok = real && write_beside(real, info.st_mode & 0777, text);
  free(real);
  return ok;
}
