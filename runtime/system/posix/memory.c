/* Memory: see os.h. POSIX has no huge pages, and does not tell how much memory is free or in use. */
#include "system/os.h"

#include <unistd.h>

void os_use_huge_pages(void *p, size_t n) { (void)p, (void)n; }

void os_populate(void *p, size_t n) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < n; i += page) ((volatile char *)p)[i] = 0;
}

size_t os_free_memory(void) { return SIZE_MAX; }

size_t os_resident_memory(void) { return 0; }

void os_return_freed(void) {}

void os_keep_heaps_small(void) {}

void os_interleave(void *p, size_t n, const os_cpus *nodes) { (void)p, (void)n, (void)nodes; }
