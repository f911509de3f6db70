/* Reads UTF-8 one character at a time, by table 3-7 of the Unicode standard (well-formed byte sequences). */
#ifndef DT_UTF8_H
#define DT_UTF8_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
  UTF8_GOOD, /* a whole character */
  UTF8_BAD,  /* a maximal subpart of an ill-formed sequence: one U+FFFD replaces it */
  UTF8_CUT   /* the text ends inside a character that is well-formed so far */
} utf8_kind;

/* Examines the character that begins at s, of which n >= 1 bytes are left. *len is its length in bytes, 1..4. */
utf8_kind utf8_next(const char *s, size_t n, size_t *len);

/* Returns the code point of a whole character of len bytes. */
int32_t utf8_code_point(const char *s, size_t len);

/* Returns the length of the longest well-formed beginning, which is n if the whole text is UTF-8. */
size_t utf8_valid_prefix(const char *s, size_t n);

#endif
