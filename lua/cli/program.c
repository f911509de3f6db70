/* Starts programs that are installed with this one: see program.h. */
#include "cli/program.h"

#include "cli/complain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, char path[2 * PATH_MAX]) {
  static const char *const places[] = {"", "../lib/dtrun/"};
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
  while (n > 0 && path[n - 1] != '/') n--;
  for (int i = 0; i < 2 && n > 0; i++) {
    snprintf(path + n, PATH_MAX, "%s%s", places[i], name);
    if (access(path, X_OK) == 0) return true;
  }
  return false;
}

int program_run(const char *name, char **argv, const char *missing) {
  char path[2 * PATH_MAX];
  if (!program_find(name, path)) return complain(EXIT_ENGINE, "%s", missing);
  argv[0] = path;
  execv(path, argv);
  return complain(EXIT_ENGINE, "%s does not start: %s", path, strerror(errno));
}
