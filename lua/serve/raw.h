/* Parts of a JSON text as they were written: cJSON makes doubles of numbers, which lose digits. */
#ifndef SERVE_RAW_H
#define SERVE_RAW_H

#include <stddef.h>

typedef struct {
  const char *at; /* NULL: it is not there */
  size_t len;
} raw_json;

/* The value of an object's member, the first of that name. The text is JSON that cJSON has read. */
raw_json raw_member(raw_json object, const char *name);

#endif
