/* Connections, random bytes, and searching in bytes: see os.h. */
#include "system/os.h"

#include <poll.h>
#include <string.h>
#include <sys/random.h>

bool os_peer_left(int connection) {
  struct pollfd look = {.fd = connection, .events = POLLRDHUP};
  return poll(&look, 1, 0) > 0 && look.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

bool os_random(void *bytes, size_t n) { return getrandom(bytes, n, GRND_NONBLOCK) == (ssize_t)n; }

void *os_find(const void *bytes, size_t n, const void *part, size_t m) { return memmem(bytes, n, part, m); }
