/* Error messages: see status.h. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

dt_status dt_fail(dt_error *err, dt_status status, const char *format, ...) {
  if (err) {
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
  }
  return status;
}

dt_status dt_fail_memory(dt_error *err, const char *what, unsigned long long bytes) {
  return dt_fail(err, DT_ENOMEM, "out of memory: %llu bytes for %s", bytes, what);
}
