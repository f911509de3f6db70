/* Shows generated text on standard output: see shown.h. */
#include "cli/shown.h"

#include "cli/complain.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <string.h>

void shown_fail(shown *s, const char *what, FILE *file) {
  if (!s->lost) complain(EXIT_ENGINE, "%s: %s", what, strerror(errno));
  clearerr(file);
  s->lost = true;
  interrupted = 1; /* the other end of the pipe is closed */
}

bool shown_text(void *user, const char *bytes, size_t len) {
  shown *s = user;
  if (len == 0 || s->lost) return !s->lost;
  if (s->color) fputs(s->color, stdout);
  bool written = fwrite(bytes, 1, len, stdout) == len;
  if (s->color) fputs("\033[0m", stdout);
  if (!written || fflush(stdout) != 0) shown_fail(s, "standard output", stdout);
  stand_in_line(bytes[len - 1] != '\n');
  return !s->lost;
}

void shown_origin(void *user, dtl_origin origin) {
  static const char *const colors[] = {
      [DTL_DRAFTED] = "\033[32m", [DTL_BONUS] = "\033[36m", [DTL_CORRECTED] = "\033[33m"};
  ((shown *)user)->color = colors[origin];
}
