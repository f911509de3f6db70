/* Messages: see fail.h. What a policy says ends up on a terminal, so control characters never pass. */
#include "files/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dtl_kind_name(dtl_kind kind) {
  switch (kind) {
  case DTL_POLICY: return "policy";
  case DTL_INPUT: return "input";
  case DTL_CONTEXT: return "context";
  case DTL_DEVICE: return "device";
  case DTL_INTERRUPTED: return "interrupted";
  }
  return "device";
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

bool dtl_fail(dtl_error *err, dtl_kind kind, const char *format, ...) {
  if (!err) return false;
  char text[sizeof err->message * 2];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  err->kind = kind;
  err->file[0] = 0;
  err->line = 0;
  err->traceback[0] = 0;
  dtl_clean(err->message, sizeof err->message, text, strlen(text));
  return false;
}

bool dtl_fail_engine(dtl_error *err, const dt_error *engine) {
  bool input = engine->status == DT_EINPUT || engine->status == DT_EWEIGHTS;
  dtl_kind kind = input ? DTL_INPUT : engine->status == DT_ECONTEXT ? DTL_CONTEXT : DTL_DEVICE;
  return dtl_fail(err, kind, "%s", engine->message);
}
