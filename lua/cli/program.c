/* Starts programs that are installed with this one: see program.h. */
#include "cli/program.h"

#include "cli/complain.h"
#include "system/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, char path[2 * PATH_MAX]) {
  static const char *const places[] = {"", "../lib/dtrun/"};
  if (!os_program(path)) return false;
  const size_t n = (size_t)(strrchr(path, '/') + 1 - path);
  for (int i = 0; i < 2; i++) {
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
