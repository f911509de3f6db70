/* JSON text: see json_text.h. */
#include "files/json_text.h"

#include "dtrun.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_bytes(json_text *out, const char *bytes, size_t len) {
  if (out->failed) return;
  if (out->len + len + 1 > out->capacity) {
    size_t capacity = 2 * (out->len + len) + 64;
    char *grown = realloc(out->bytes, capacity);
    if (!grown) {
      out->failed = true;
      return;
    }
    out->bytes = grown;
    out->capacity = capacity;
  }
  memcpy(out->bytes + out->len, bytes, len);
  out->len += len;
  out->bytes[out->len] = 0;
}

void json_raw(json_text *out, const char *text) { json_bytes(out, text, strlen(text)); }

void json_float(json_text *out, float x) {
  char text[32];
  snprintf(text, sizeof text, "%.9g", (double)x);
  json_raw(out, isfinite(x) ? text : "null");
}

void json_string(json_text *out, const char *bytes, size_t len) {
  char *text = dt_utf8(bytes, len, &len);
  if (!text) {
    out->failed = true;
    return;
  }
  json_bytes(out, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\') {
      json_bytes(out, "\\", 1);
      json_bytes(out, text + i, 1);
    } else if (c == '\n') {
      json_bytes(out, "\\n", 2);
    } else if (c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)text[i + 1] < 0xA0)) {
      char escape[8]; /* C2 80..9F in UTF-8 are the control characters U+0080..U+009F */
      snprintf(escape, sizeof escape, "\\u%04x", c == 0xC2 ? (unsigned char)text[++i] : c);
      json_bytes(out, escape, 6);
    } else {
      json_bytes(out, text + i, 1);
    }
  }
  json_bytes(out, "\"", 1);
  free(text);
}

char *json_finish(json_text *out) {
  if (!out->failed) return out->bytes;
  free(out->bytes);
  return NULL;
}
