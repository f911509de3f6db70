/* How much more memory may be taken: what the system has available, within the limit of the process's control group. */
#include "internal.h"

#include <stdint.h>
#include <stdio.h>

/* Reads a number with `format` from the first line that matches. Returns false if no line does. */
static bool read_number(const char *path, const char *format, unsigned long long *value) {
  char line[256];
  bool found = false;
  FILE *file = fopen(path, "r");
  while (file && !found && fgets(line, sizeof line, file)) found = sscanf(line, format, value) == 1;
  if (file) fclose(file);
  return found;
}

size_t cpu_bytes_free(const dt_backend *b) {
  (void)b;
  unsigned long long available, most, used, group = SIZE_MAX;
  if (!read_number("/proc/meminfo", "MemAvailable: %llu", &available)) return SIZE_MAX;
  available *= 1024;
  if (read_number("/sys/fs/cgroup/memory.max", "%llu", &most) &&
      read_number("/sys/fs/cgroup/memory.current", "%llu", &used))
    group = used < most ? most - used : 0;
  if (group != SIZE_MAX && read_number("/sys/fs/cgroup/memory.stat", "file %llu", &used))
    group += used; /* the file cache: the system frees it when memory is needed */
  return (size_t)(available < group ? available : group);
}
