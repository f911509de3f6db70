/* GPT-2's alphabet: see alphabet.h. The bytes that are not printable are 00..20, 7F..A0 and AD. */
#include "text/alphabet.h"

#include "text/utf8.h"

#include <string.h>

int32_t alphabet_character(unsigned char byte) {
  if (byte <= 0x20) return 0x100 + byte;
  if (byte >= 0x7F && byte <= 0xA0) return 0x121 + (byte - 0x7F);
  return byte == 0xAD ? 0x143 : byte;
}

static int byte_of(int32_t c) {
  if (c >= 0x100 && c <= 0x120) return c - 0x100;
  if (c >= 0x121 && c <= 0x142) return c - 0x121 + 0x7F;
  if (c == 0x143) return 0xAD;
  return c < 0x100 && alphabet_character((unsigned char)c) == c ? (int)c : -1;
}

size_t alphabet_write(const char *bytes, size_t n, char *out) {
  size_t written = 0;
  for (size_t i = 0; i < n; i++) {
    int32_t c = alphabet_character((unsigned char)bytes[i]);
    if (c >= 0x80) {
      out[written++] = (char)(0xC0 | c >> 6);
      c = 0x80 | (c & 0x3F);
    }
    out[written++] = (char)c;
  }
  return written;
}

size_t alphabet_read(const char *string, size_t n, char *out) {
  size_t written = 0, len;
  for (size_t i = 0; i < n; i += len) {
    utf8_next(string + i, n - i, &len);
    int byte = byte_of(utf8_code_point(string + i, len));
    if (byte < 0) {
      memcpy(out, string, n);
      return n;
    }
    out[written++] = (char)byte;
  }
  return written;
}
