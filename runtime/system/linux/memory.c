/* Memory, and how much of it there is: see os.h. */
#include "system/os.h"

#include <linux/mempolicy.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *os_map(size_t n, bool sparse) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0);
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void os_use_huge_pages(void *p, size_t n) { madvise(p, n, MADV_HUGEPAGE); }

void os_populate(void *p, size_t n) { madvise(p, n, MADV_POPULATE_WRITE); }

/* Reads a number with `format` from the first line that matches. Returns false if no line does. */
static bool read_number(const char *path, const char *format, unsigned long long *value) {
  char line[256];
  bool found = false;
  FILE *file = fopen(path, "r");
  while (file && !found && fgets(line, sizeof line, file)) found = sscanf(line, format, value) == 1;
  if (file) fclose(file);
  return found;
}

/* What the system has available, within the limit of the process's control group. */
size_t os_free_memory(void) {
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

size_t os_resident_memory(void) {
  unsigned long long pages;
  return read_number("/proc/self/statm", "%*u %llu", &pages) ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

void os_return_freed(void) { malloc_trim(0); }

/* Otherwise the heap of each thread keeps as much memory as its largest job took. musl has no such heaps. */
void os_keep_heaps_small(void) {
#ifdef M_ARENA_MAX
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

/* libnuma is not needed for one system call. */
void os_interleave(void *p, size_t n, const os_cpus *nodes) {
  syscall(SYS_mbind, p, n, MPOL_INTERLEAVE, nodes->bits, (unsigned long)OS_CPUS + 1, 0U);
}
