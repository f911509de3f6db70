/* Writes JSON text that cJSON cannot: strings with NUL bytes or invalid UTF-8, and 64-bit integers. */
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
void json_string(json_text *out, const char *bytes, size_t len); /* quoted; invalid UTF-8 as U+FFFD */
char *json_finish(json_text *out);                               /* malloc'd, NUL-terminated; NULL when out of memory */

#endif
