/* How much memory this process uses at the moment. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include "unit.h"

#include <stdio.h>
#include <unistd.h>

/* Meaningless with sanitizers, and in a build with POSIX alone, which keep freed memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(DTRUN_POSIX)
#define RESIDENT_MEANS_NOTHING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESIDENT_MEANS_NOTHING 1
#endif
#endif
#ifndef RESIDENT_MEANS_NOTHING
#define RESIDENT_MEANS_NOTHING 0
#endif

static inline size_t resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) fail_msg("cannot read /proc/self/statm");
  fclose(file);
  return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
