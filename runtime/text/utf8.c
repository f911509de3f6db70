/* UTF-8: see utf8.h. The second byte's range depends on the first (no overlong forms, no surrogates, nothing above
 * U+10FFFF); every later byte is 80..BF. */
#include "text/utf8.h"

#include <string.h>

utf8_kind utf8_next(const char *s, size_t n, size_t *len) {
  const unsigned char *b = (const unsigned char *)s;
  unsigned char low = 0x80, high = 0xBF;
  size_t want;
  *len = 1;
  if (b[0] < 0x80) return UTF8_GOOD;
  if (b[0] >= 0xC2 && b[0] <= 0xDF) {
    want = 2;
  } else if (b[0] >= 0xE0 && b[0] <= 0xEF) {
    want = 3;
    if (b[0] == 0xE0) low = 0xA0;
    if (b[0] == 0xED) high = 0x9F;
  } else if (b[0] >= 0xF0 && b[0] <= 0xF4) {
    want = 4;
    if (b[0] == 0xF0) low = 0x90;
    if (b[0] == 0xF4) high = 0x8F;
  } else {
    return UTF8_BAD;
  }
  for (; *len < want; ++*len) {
    if (*len == n) return UTF8_CUT;
    if (b[*len] < low || b[*len] > high) return UTF8_BAD;
    low = 0x80;
    high = 0xBF;
  }
  return UTF8_GOOD;
}

int32_t utf8_code_point(const char *s, size_t len) {
  const unsigned char *b = (const unsigned char *)s;
  switch (len) {
  case 1: return b[0];
  case 2: return (b[0] & 0x1F) << 6 | (b[1] & 0x3F);
  case 3: return (b[0] & 0x0F) << 12 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F);
  default: return (b[0] & 0x07) << 18 | (b[1] & 0x3F) << 12 | (b[2] & 0x3F) << 6 | (b[3] & 0x3F);
  }
}

size_t utf8_valid_prefix(const char *s, size_t n) {
  size_t i = 0;
  while (i < n) {
    uint64_t eight;
    if (n - i >= sizeof eight) { /* most text is ASCII */
      memcpy(&eight, s + i, sizeof eight);
      if (!(eight & UINT64_C(0x8080808080808080))) {
        i += sizeof eight;
        continue;
      }
    }
    size_t len;
    if (utf8_next(s + i, n - i, &len) != UTF8_GOOD) return i;
    i += len;
  }
  return n;
}
