/* What POSIX.1-2008 lacks, but Linux, macOS and the BSDs have: see os.h, and ../unix.c for what both builds do alike.
 * MAP_ANONYMOUS and dladdr are in POSIX.1-2024. */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include "system/os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

void *os_map(size_t n, bool sparse) {
  (void)sparse;
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Finds a program in the folders of $PATH, as the shell did. */
static bool find_program(const char *name, char path[PATH_MAX]) {
  const char *folders = getenv("PATH");
  for (const char *at = folders; at; at = strchr(at, ':')) {
    char file[PATH_MAX];
    at += at != folders;
    if (snprintf(file, sizeof file, "%.*s/%s", (int)strcspn(at, ":"), at, name) < PATH_MAX && !access(file, X_OK))
      return realpath(file, path) != NULL;
  }
  return false;
}

/* The loader's name of a program is argv[0]. */
bool os_own_file(char path[PATH_MAX]) {
  static const char here;
  Dl_info mine;
  if (!dladdr(&here, &mine)) return false;
  return strchr(mine.dli_fname, '/') ? realpath(mine.dli_fname, path) != NULL : find_program(mine.dli_fname, path);
}

void os_allowed(os_cpus *set) {
  const int n = os_online_cpus();
  *set = (os_cpus){0};
  for (int i = 0; i < n && i < OS_CPUS; i++) set->bits[i / 64] |= UINT64_C(1) << i % 64;
}

#ifdef __APPLE__
static bool has(const char *feature) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, NULL, 0) == 0 && value;
}

bool os_has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
bool os_has_i8mm(void) { return has("hw.optional.arm.FEAT_I8MM"); }
#else
bool os_has_dotprod(void) { return false; }
bool os_has_i8mm(void) { return false; }
#endif
