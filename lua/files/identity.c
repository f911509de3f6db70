/* Digests of the conditions of a measurement: see identity.h. */
#include "files/identity.h"

#include "host.h"
#include "system/os.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDS (64 << 10)
#define PIECE (4 << 10)
#define PIECES 64

_Static_assert(DTL_DIGEST == DIGEST_TEXT, "results have whole digests");

/* Adds up to len bytes from the offset `at` on. */
static void add_range(digest *d, int fd, off_t at, size_t len) {
  unsigned char bytes[PIECE];
  while (len > 0) {
    ssize_t n = pread(fd, bytes, len < sizeof bytes ? len : sizeof bytes, at);
    if (n <= 0) break;
    digest_add(d, bytes, (size_t)n);
    at += n, len -= (size_t)n;
  }
}

static void add_all(digest *d, int fd, off_t size) { add_range(d, fd, 0, (size_t)size); }

static void add_sample(digest *d, int fd, off_t size) {
  if (size <= 2 * ENDS + PIECES * PIECE) {
    add_all(d, fd, size);
    return;
  }
  add_range(d, fd, 0, ENDS);
  for (int i = 0; i < PIECES; i++) add_range(d, fd, ENDS + (size - 2 * ENDS - PIECE) / PIECES * i, PIECE);
  add_range(d, fd, size - ENDS, ENDS);
}

/* Adds a file. False: there is no such file, and nothing is added. */
static bool add_file(digest *d, const char *path, void (*add)(digest *, int, off_t)) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool there = fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode);
  if (there) {
    int64_t size = info.st_size;
    digest_add(d, &size, sizeof size);
    add(d, fd, info.st_size);
  }
  if (fd >= 0) close(fd);
  return there;
}

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

void identity_model(const char *path, char text[DIGEST_TEXT]) {
  struct dirent **entries;
  digest d;
  digest_begin(&d, "model");
  int n = path ? scandir(path, &entries, is_shown, alphasort) : 0;
  bool there = n < 0 ? add_file(&d, path, add_sample) : n > 0;
  for (int i = 0; i < n; i++) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    digest_add_text(&d, entries[i]->d_name);
    add_file(&d, file, add_sample);
    free(entries[i]);
  }
  if (path && n >= 0) free(entries);
  if (there)
    digest_end(&d, text);
  else
    *text = '\0';
}

void identity_build(char text[DIGEST_TEXT]) {
  char path[PATH_MAX];
  digest d;
  digest_begin(&d, "program");
  add_file(&d, os_program_image(path), add_all);
  digest_end(&d, text);
}

void identity_text(const char *source, size_t len, char text[DIGEST_TEXT]) {
  digest d;
  digest_begin(&d, "policy");
  digest_add(&d, source, len);
  digest_end(&d, text);
}

void identity_module(const char *path, const char *source, size_t len, char text[DIGEST_TEXT]) {
  digest d;
  digest_begin(&d, "policy and module");
  digest_add_text(&d, text);
  digest_add_text(&d, path);
  digest_add(&d, source, len);
  digest_end(&d, text);
}
