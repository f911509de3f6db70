/* Error messages: see status.h. */
#include "system/status.h"

#include <stdarg.h>
#include <stdio.h>

void dt_clean(char *text) {
  if (!text) return;
  unsigned char last = 0;
  for (unsigned char *c = (unsigned char *)text; *c; last = *c++) {
    if (*c < 0x20 || *c == 0x7F) *c = '?';
    if (last == 0xC2 && *c >= 0x80 && *c < 0xA0) c[-1] = *c = '?'; /* U+0080..U+009F, which terminals also obey */
  }
}

dt_status dt_fail(dt_error *err, dt_status status, const char *format, ...) {
  if (err) {
    err->status = status;
    err->file[0] = err->traceback[0] = 0;
    err->line = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format ? format : "", args);
    va_end(args);
    dt_clean(err->message);
  }
  return status;
}

dt_status dt_fail_memory(dt_error *err, const char *what, unsigned long long bytes) {
  return dt_fail(err, DT_ENOMEM, "out of memory: %llu bytes for %s", bytes, what ? what : "what was asked for");
}
