/* The text stream: see text.h. Invariants: shown <= len <= capacity; no stop string lies in bytes[0..len); the shown
 * bytes never include an end that may still grow into a stop string. */
#include "text/text.h"

#include "system/os.h"
#include "text/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

dt_status text_init(text_stream *t, const char *const *stop, int n_stop, dt_error *err) {
  *t = (text_stream){0};
  dt_status status = DT_OK;
  for (int i = 0; i < n_stop && !status; i++) status = text_add_stop(t, stop[i], err);
  if (status) text_free(t);
  return status;
}

dt_status text_add_stop(text_stream *t, const char *stop, dt_error *err) {
  if (!stop) return dt_fail(err, DT_EINPUT, "stop string %d is NULL", t->n_stop + 1);
  size_t len = strlen(stop), n = (size_t)t->n_stop + 1;
  if (len == 0) return dt_fail(err, DT_EINPUT, "stop string %zu is empty: give at least one byte", n);
  char **list = realloc(t->stop, n * sizeof *list);
  if (list) t->stop = list;
  size_t *lengths = realloc(t->stop_len, n * sizeof *lengths);
  if (lengths) t->stop_len = lengths;
  char *own = list && lengths ? strdup(stop) : NULL;
  if (!own) return dt_fail_memory(err, "a stop string", len + 1);
  t->stop[t->n_stop] = own;
  t->stop_len[t->n_stop++] = len;
  return DT_OK;
}

void text_free(text_stream *t) {
  for (int i = 0; t->stop && i < t->n_stop; i++) free(t->stop[i]);
  free(t->stop);
  free(t->stop_len);
  free(t->bytes);
  *t = (text_stream){0};
}

dt_status text_reserve(text_stream *t, size_t len, dt_error *err) {
  size_t capacity = t->capacity ? t->capacity : 256;
  if (len <= t->capacity - t->len) return DT_OK;
  while (capacity - t->len < len) {
    if (capacity > SIZE_MAX / 2) return dt_fail_memory(err, "generated text", len);
    capacity *= 2;
  }
  char *grown = realloc(t->bytes, capacity);
  if (!grown) return dt_fail_memory(err, "generated text", capacity);
  t->bytes = grown;
  t->capacity = capacity;
  return DT_OK;
}

dt_status text_push(text_stream *t, const char *bytes, size_t len, dt_error *err) {
  if (t->stopped) return dt_fail(err, DT_ESTATE, "text pushed after a stop string was completed");
  if (len == 0) return DT_OK;
  dt_status status = text_reserve(t, len, err);
  if (status) return status;
  memcpy(t->bytes + t->len, bytes, len);
  size_t old_len = t->len;
  t->len += len;

  size_t cut = t->len;
  for (int i = 0; i < t->n_stop; i++) {
    /* only a match that ends in the new bytes is new */
    size_t from = old_len >= t->stop_len[i] - 1 ? old_len - (t->stop_len[i] - 1) : 0;
    const char *hit = os_find(t->bytes + from, t->len - from, t->stop[i], t->stop_len[i]);
    if (!hit) continue;
    t->stopped = true;
    if ((size_t)(hit - t->bytes) < cut) cut = (size_t)(hit - t->bytes);
  }
  t->len = cut;
  return DT_OK;
}

/* The length of the longest end of the n bytes that begins a stop string, but is not all of one. */
static size_t possible_stop(const text_stream *t, const char *bytes, size_t n) {
  size_t longest = 0;
  for (int i = 0; i < t->n_stop; i++) {
    size_t k = t->stop_len[i] - 1 < n ? t->stop_len[i] - 1 : n;
    while (k > longest && memcmp(bytes + n - k, t->stop[i], k) != 0) k--;
    if (k > longest) longest = k;
  }
  return longest;
}

/* The number of bytes at the end that are an unfinished character: 0..3. */
static size_t unfinished_character(const char *bytes, size_t n) {
  for (size_t k = 1; k <= 3 && k <= n; k++) {
    size_t len;
    if (utf8_next(bytes + n - k, k, &len) == UTF8_CUT) return k;
  }
  return 0;
}

const char *text_take(text_stream *t, bool final, size_t *len) {
  const char *next = t->bytes ? t->bytes + t->shown : "";
  size_t n = t->len - t->shown;
  if (!final && !t->stopped) {
    n -= possible_stop(t, next, n);
    n -= unfinished_character(next, n);
  }
  t->shown += n;
  *len = n;
  return next;
}

char *text_to_utf8(const char *bytes, size_t n, size_t *out_len) {
  static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD}; /* U+FFFD */
  size_t need = 0, at = 0, len;
  for (size_t i = 0; i < n; i += len) {
    size_t good = utf8_valid_prefix(bytes + i, n - i);
    need += good;
    i += good;
    if (i == n) break;
    utf8_next(bytes + i, n - i, &len);
    need += sizeof replacement;
  }
  char *out = malloc(need + 1);
  if (!out) return NULL;
  for (size_t i = 0; i < n; i += len) {
    size_t good = utf8_valid_prefix(bytes + i, n - i);
    memcpy(out + at, bytes + i, good);
    at += good;
    i += good;
    if (i == n) break;
    utf8_next(bytes + i, n - i, &len);
    memcpy(out + at, replacement, sizeof replacement);
    at += sizeof replacement;
  }
  out[at] = '\0';
  if (out_len) *out_len = at;
  return out;
}
