/* The files of the program: see os.h. */
#include "system/os.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char image[] = "/proc/self/exe";

bool os_program(char path[PATH_MAX]) {
  ssize_t n = readlink(image, path, PATH_MAX - 1);
  if (n > 0) path[n] = '\0';
  return n > 0;
}

const char *os_program_image(char path[PATH_MAX]) {
  (void)path;
  return image;
}

/* The loader's name of the program is not reliable. */
bool os_own_file(char path[PATH_MAX]) {
  static const char here;
  Dl_info mine, program;
  if (dladdr((void *)getauxval(AT_PHDR), &program) && dladdr(&here, &mine) && mine.dli_fbase != program.dli_fbase)
    return realpath(mine.dli_fname, path) != NULL;
  if (os_program(path)) return true;
  return dladdr(&here, &mine) && realpath(mine.dli_fname, path); /* in a root without /proc */
}
