/* A growing array of bytes. */
#ifndef DT_BUFFER_H
#define DT_BUFFER_H

#include "system/status.h"

#include <stddef.h>

typedef struct {
  char *bytes;
  size_t n, capacity;
  size_t limit; /* maximum number of bytes; 0: no limit */
} byte_buffer;  /* zeroed: empty. Free `bytes`. */

/* Returns the maximum number of bytes that a tokenizer's steps may make from n. Otherwise the steps of a malicious file
 * could multiply each other's output. */
static inline size_t buffer_growth(size_t n) { return 64 * n + 1024; }

/* Makes room for n more bytes. After a failure (DT_ENOMEM; DT_EINPUT: the limit) the buffer is unchanged. `what` names
 * the buffer in messages. */
dt_status buffer_reserve(byte_buffer *b, size_t n, const char *what, dt_error *err);

dt_status buffer_add(byte_buffer *b, const char *bytes, size_t n, const char *what, dt_error *err);

/* Appends a text of n bytes, with every `from` replaced by `to`. from_len >= 1. */
dt_status buffer_add_replaced(byte_buffer *b, const char *text, size_t n, const char *from, size_t from_len,
                              const char *to, size_t to_len, const char *what, dt_error *err);

#endif
