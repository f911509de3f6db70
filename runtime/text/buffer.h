/* A growing array of bytes. */
#ifndef DT_BUFFER_H
#define DT_BUFFER_H

#include "system/status.h"

#include <stddef.h>

typedef struct {
  char *bytes;
  size_t n, capacity;
  size_t limit; /* more bytes than these are refused; 0: none are */
} byte_buffer;  /* zeroed: empty. Free `bytes`. */

/* The most bytes that a tokenizer's steps may make from n: a bad file's steps could multiply each other's output. */
static inline size_t buffer_growth(size_t n) { return 64 * n + 1024; }

/* Makes room for n more bytes; a failure (DT_ENOMEM, or DT_EINPUT: the limit) leaves the buffer unchanged. `what` names
 * it in messages. */
dt_status buffer_reserve(byte_buffer *b, size_t n, const char *what, dt_error *err);

dt_status buffer_add(byte_buffer *b, const char *bytes, size_t n, const char *what, dt_error *err);

/* Appends a text of n bytes in which every `from` is `to`. from_len >= 1. */
dt_status buffer_add_replaced(byte_buffer *b, const char *text, size_t n, const char *from, size_t from_len,
                              const char *to, size_t to_len, const char *what, dt_error *err);

#endif
