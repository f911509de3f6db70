/* Error messages: see fail.h. Messages of policies appear on a terminal, so control characters are replaced. */
#include "files/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dtl_kind_name(dt_status status) {
  switch (status) {
  case DT_EPOLICY: return "policy";
  case DT_EINPUT:
  case DT_EWEIGHTS: return "input";
  case DT_ECONTEXT: return "context";
  case DT_EINTERRUPTED: return "interrupted";
  default: return "device";
  }
}

size_t dtl_clean(char *out, size_t size, const char *text, size_t len) {
  if (!out || !size) return 0;
  if (!text) len = 0;
  if (len >= size) {
    len = size - 1;
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80) len--;
  }
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    out[i] = (char)(c < 0x20 || c == 0x7F ? ' ' : c);
    /* C1 controls, U+0080..U+009F, are C2 80..9F in UTF-8 */
    if (c >= 0x80 && c < 0xA0 && i > 0 && (unsigned char)text[i - 1] == 0xC2) out[i - 1] = out[i] = '?';
  }
  out[len] = 0;
  return len;
}

dt_status dtl_fail(dt_error *err, dt_status status, const char *format, ...) {
  char text[sizeof err->message * 2], clean[sizeof err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  dtl_clean(clean, sizeof clean, text, strlen(text));
  return dt_fail(err, status, "%s", clean);
}

dt_status dtl_fail_memory(dt_error *err, const char *what) {
  return dtl_fail(err, DT_ENOMEM, "out of memory: %s", what);
}
