/* Connections, random bytes, and searching in bytes: see os.h. */
#include "system/os.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* POSIX tells it only when nothing that the other side sent is left to read. */
bool os_peer_left(int connection) {
  struct pollfd look = {.fd = connection, .events = POLLIN};
  char next;
  if (poll(&look, 1, 0) <= 0) return false;
  return look.revents & (POLLHUP | POLLERR) || recv(connection, &next, 1, MSG_PEEK) == 0;
}

/* Not in POSIX, but on all systems. */
bool os_random(void *bytes, size_t n) {
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool fine = fd >= 0 && read(fd, bytes, n) == (ssize_t)n;
  if (fd >= 0) close(fd);
  return fine;
}

void *os_find(const void *bytes, size_t n, const void *part, size_t m) {
  const char *at = bytes, *first = part;
  if (m == 0) return (void *)at;
  for (const char *end = at + n; (size_t)(end - at) >= m; at++) {
    at = memchr(at, *first, (size_t)(end - at) - m + 1);
    if (!at) return NULL;
    if (memcmp(at, part, m) == 0) return (void *)at;
  }
  return NULL;
}
