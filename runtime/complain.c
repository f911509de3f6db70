/* Failures of the command line: see complain.h. */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

int complain(int status, const char *format, ...) {
  char line[1200];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  for (char *c = line; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  fprintf(stderr, "dtrun: %s\n", line);
  return status;
}

int status_of(const dtl_error *err) {
  static const int status[] = {
      [DTL_POLICY] = EXIT_POLICY, [DTL_INPUT] = EXIT_USAGE, [DTL_CONTEXT] = EXIT_USAGE, [DTL_DEVICE] = EXIT_ENGINE};
  return status[err->kind];
}

int complain_of(const dtl_error *err) { return complain(status_of(err), "%s", err->message); }

int complain_of_engine(const dt_error *err) {
  bool usage = err->status == DT_EINPUT || err->status == DT_ECONTEXT;
  return complain(usage ? EXIT_USAGE : EXIT_ENGINE, "%s", err->message);
}
