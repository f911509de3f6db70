/* Writes JSON that cJSON cannot write: strings with NUL bytes or invalid UTF-8, 64-bit integers, and floats with enough
 * digits (9) to keep all their bits. */
#ifndef DTL_JSON_TEXT_H
#define DTL_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char *bytes;
  size_t len, capacity;
  bool failed; /* out of memory */
} json_text;

void json_raw(json_text *out, const char *text);
void json_bytes(json_text *out, const char *bytes, size_t len);  /* as they are, as json_raw writes texts */
void json_string(json_text *out, const char *bytes, size_t len); /* quoted; invalid UTF-8 as U+FFFD */
void json_float(json_text *out, float x);                        /* 9 digits; null if x is not finite */
char *json_finish(json_text *out);                               /* malloc'd, NUL-terminated; NULL when out of memory */

#endif
