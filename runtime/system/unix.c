/* What POSIX.1-2008 lacks, but Linux, macOS and the BSDs have alike; see os.h. munmap is in POSIX, and
 * _SC_NPROCESSORS_ONLN in POSIX.1-2024. flock and two members of rusage are in no POSIX. A POSIX lock (fcntl) cannot
 * replace flock, since it ends when the process closes any descriptor of the file. */
#ifndef _GNU_SOURCE /* a build with POSIX alone */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#endif
#include "system/os.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

void os_unmap(void *pages, size_t n) { munmap(pages, n); }

int os_online_cpus(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }

size_t os_peak_memory(void) {
#ifdef __APPLE__
  enum { UNIT = 1 };
#else
  enum { UNIT = 1024 };
#endif
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (size_t)usage.ru_maxrss * UNIT;
}

long os_preemptions(bool children) {
  struct rusage r = {0};
  getrusage(children ? RUSAGE_CHILDREN : RUSAGE_SELF, &r);
  return r.ru_nivcsw;
}

bool os_lock(int fd, bool wait) { return flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) == 0; }
