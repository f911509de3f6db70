/* Finds parts of a JSON text as they were written. cJSON turns numbers into doubles, which loses digits. */
#ifndef SERVE_RAW_H
#define SERVE_RAW_H

#include <stddef.h>

typedef struct {
  const char *at; /* NULL: there is no such part */
  size_t len;
} raw_json;

/* Returns the value of an object's member; if several members have the name, the first one's. The text must be JSON
 * that cJSON has accepted. */
raw_json raw_member(raw_json object, const char *name);

/* Returns the first element of a list and removes it from the text, so that the next call returns the next one. at is
 * NULL after the last element. */
raw_json raw_element(raw_json *list);

#endif
