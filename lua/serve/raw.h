/* Finds parts of a JSON text as they were written. cJSON turns numbers into doubles, which loses digits. */
#ifndef SERVE_RAW_H
#define SERVE_RAW_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *at; /* NULL: there is no such part */
  size_t len;
} raw_json;

/* Returns the value of an object's member; if several members have the name, the first one's. The text must be JSON
 * that cJSON has accepted. */
raw_json raw_member(raw_json object, const char *name);

/* Takes the next member of an object, or the next element of a list, from *left, which is the whole value before the
 * first call. *name is a member's name in quotes, *value its value or the element. False: there is no other. */
bool raw_next(raw_json *left, raw_json *name, raw_json *value);

#endif
