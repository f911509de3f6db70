/* Limits of the process: see limits.h. */
#include "cli/limits.h"

#include "cli/complain.h"

#include <signal.h>
#include <sys/resource.h>

#define LEAST_STACK_KIB                                                                                                \
  1024 /* stack of each thread too: a deeply nested file, a recursion of Lua through C need it                         \
        */

int limits_check(void) {
  struct rlimit stack;
  signal(SIGXFSZ, SIG_IGN);
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur / 1024 >= LEAST_STACK_KIB) return 0;
  return complain(EXIT_ENGINE, "the stack is limited to %llu KiB, at least %d are needed: ulimit -s %d",
                  (unsigned long long)stack.rlim_cur / 1024, LEAST_STACK_KIB, 8 * LEAST_STACK_KIB);
}
