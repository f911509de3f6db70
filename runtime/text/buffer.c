/* Bytes that grow: see buffer.h. */
#include "text/buffer.h"

#include "system/os.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

dt_status buffer_reserve(byte_buffer *b, size_t n, const char *what, dt_error *err) {
  if (b->limit && n > b->limit - b->n)
    return dt_fail(err, DT_EINPUT, "%s: the tokenizer's replacements make it longer than the limit of %zu bytes", what,
                   b->limit);
  if (b->bytes && n <= b->capacity - b->n) return DT_OK;
  if (n > SIZE_MAX / 4) return dt_fail_memory(err, what, n);
  size_t capacity = (b->n + n) + (b->n + n) / 2 + 64;
  char *grown = realloc(b->bytes, capacity);
  if (!grown) return dt_fail_memory(err, what, capacity);
  b->bytes = grown;
  b->capacity = capacity;
  return DT_OK;
}

dt_status buffer_add(byte_buffer *b, const char *bytes, size_t n, const char *what, dt_error *err) {
  if (n == 0) return DT_OK;
  dt_status status = buffer_reserve(b, n, what, err);
  if (status) return status;
  memcpy(b->bytes + b->n, bytes, n);
  b->n += n;
  return DT_OK;
}

dt_status buffer_add_replaced(byte_buffer *b, const char *text, size_t n, const char *from, size_t from_len,
                              const char *to, size_t to_len, const char *what, dt_error *err) {
  const char *end = text + n;
  while (text < end) {
    const char *hit = os_find(text, (size_t)(end - text), from, from_len);
    dt_status status = buffer_add(b, text, (size_t)((hit ? hit : end) - text), what, err);
    if (!status && hit) status = buffer_add(b, to, to_len, what, err);
    if (status) return status;
    text = hit ? hit + from_len : end;
  }
  return DT_OK;
}
