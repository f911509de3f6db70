/* What a measurement was made with: see identity.h. */
#include "identity.h"

#include "hash.h"

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

/* The bytes from `at` on, as far as there are any. */
static uint64_t hash_range(uint64_t hash, int fd, off_t at, size_t len) {
  unsigned char bytes[PIECE];
  while (len > 0) {
    ssize_t n = pread(fd, bytes, len < sizeof bytes ? len : sizeof bytes, at);
    if (n <= 0) break;
    hash = hash_bytes(hash, bytes, (size_t)n);
    at += n, len -= (size_t)n;
  }
  return hash;
}

static uint64_t hash_sample(uint64_t hash, int fd, off_t size) {
  if (size <= 2 * ENDS + PIECES * PIECE) return hash_range(hash, fd, 0, (size_t)size);
  hash = hash_range(hash, fd, 0, ENDS);
  for (int i = 0; i < PIECES; i++) hash = hash_range(hash, fd, ENDS + (size - 2 * ENDS - PIECE) / PIECES * i, PIECE);
  return hash_range(hash, fd, size - ENDS, ENDS);
}

/* Unchanged where there is no such file. */
static uint64_t hash_file(uint64_t hash, const char *path, uint64_t (*of)(uint64_t, int, off_t)) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode)) {
    int64_t size = info.st_size;
    hash = of(hash_bytes(hash, &size, sizeof size), fd, info.st_size);
  }
  if (fd >= 0) close(fd);
  return hash;
}

static uint64_t hash_all(uint64_t hash, int fd, off_t size) { return hash_range(hash, fd, 0, (size_t)size); }

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

uint64_t identity_model(const char *path) {
  struct dirent **entries;
  uint64_t hash = HASH_START;
  int n = scandir(path, &entries, is_shown, alphasort);
  if (n < 0) hash = hash_file(hash, path, hash_sample);
  for (int i = 0; i < n; i++) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    hash = hash_file(hash_bytes(hash, entries[i]->d_name, strlen(entries[i]->d_name)), file, hash_sample);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  return hash == HASH_START ? 0 : hash;
}

uint64_t identity_build(void) { return hash_file(HASH_START, "/proc/self/exe", hash_all); }

uint64_t identity_text(const char *text, size_t len) { return hash_bytes(HASH_START, text, len); }
