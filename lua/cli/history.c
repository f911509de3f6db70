/* The history of typed lines: see history.h. It is only a convenience, so errors in reading or writing it are
 * ignored. */
#include "cli/history.h"

#include "cli/replace.h"
#include "host.h"
#include "system/asprintf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES (4 << 20) /* a larger file is shortened */

/* Opens the file, which only the user can read; -1: that failed. If it is a pipe, this does not wait. */
static int open_file(const char *path, int flags) {
  int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0600);
  struct stat info;
  if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && fchmod(fd, 0600) == 0)) return fd;
  close(fd);
  return -1;
}

/* Returns the whole file, or its last MOST_BYTES; NULL: there is nothing to read. */
static char *read_end(const char *path) {
  int fd = open_file(path, O_RDONLY);
  off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), from = size > MOST_BYTES ? size - MOST_BYTES : 0;
  char *text = size > 0 ? malloc((size_t)(size - from) + 1) : NULL;
  ssize_t n = text ? pread(fd, text, (size_t)(size - from), from) : -1;
  if (fd >= 0) close(fd);
  if (n >= 0) text[n] = '\0';
  if (n >= 0) return text;
  free(text);
  return NULL;
}

/* Returns the last HISTORY_MOST lines. *long_before: the file has so much text before them that it should be
 * shortened. */
static char *last_lines(char *text, bool *long_before) {
  char *at = text + strlen(text);
  int n = 0;
  if (at > text) at--; /* the end of the last line */
  for (; at > text; at--)
    if (at[-1] == '\n' && ++n == HISTORY_MOST) break;
  *long_before = at - text > MOST_BYTES / 16;
  return at;
}

void history_read(void (*add)(void *user, const char *line), void *user) {
  char *path = dtl_state_file("chat_history"), *text = path ? read_end(path) : NULL, *rest;
  bool long_before;
  char *from = text ? last_lines(text, &long_before) : NULL;
  if (from && long_before) replace_file(path, from);
  for (char *line = from ? strtok_r(from, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
    add(user, line);
  free(text), free(path);
}

void history_add(const char *line) {
  char *path = dtl_state_file("chat_history"), *entry;
  int fd = path && dtl_make_folders(path) ? open_file(path, O_WRONLY | O_APPEND | O_CREAT) : -1;
  int n = fd >= 0 ? dt_asprintf(&entry, "%s\n", line) : -1;
  if (n >= 0) {
    ssize_t written = write(fd, entry, (size_t)n); /* a single write, so that lines of two chats do not mix */
    (void)written;
    free(entry);
  }
  if (fd >= 0) close(fd);
  free(path);
}
