/* Bytes that grow. */
#ifndef DT_BUFFER_H
#define DT_BUFFER_H

#include "status.h"

#include <stddef.h>

typedef struct {
  char *bytes;
  size_t n, capacity;
} byte_buffer; /* zeroed: empty. Free `bytes`. */

/* Room for n more bytes; on failure the buffer is as it was. `what` is what a message calls it. */
dt_status buffer_reserve(byte_buffer *b, size_t n, const char *what, dt_error *err);

dt_status buffer_add(byte_buffer *b, const char *bytes, size_t n, const char *what, dt_error *err);

/* Appends a text of n bytes in which every `from` is `to`. from_len >= 1. */
dt_status buffer_add_replaced(byte_buffer *b, const char *text, size_t n, const char *from, size_t from_len,
                              const char *to, size_t to_len, const char *what, dt_error *err);

#endif
