/* The text of one sequence while it grows: takes the bytes of tokens and returns the bytes that can be shown. It holds
 * back incomplete characters and bytes that may begin a stop string, and finds stop strings across token borders. No
 * I/O. */
#ifndef DT_TEXT_H
#define DT_TEXT_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char *bytes; /* all bytes pushed so far, raw (cut at a stop string once stopped) */
  size_t len, capacity;
  size_t shown; /* bytes[0..shown) were returned by text_take */
  char **stop;  /* copies, owned by the stream */
  size_t *stop_len;
  int n_stop;
  bool stopped; /* a stop string was completed: bytes ends right before it */
} text_stream;

dt_status text_init(text_stream *t, const char *const *stop, int n_stop, dt_error *err);
/* Adds a stop string, which must not be empty. */
dt_status text_add_stop(text_stream *t, const char *stop, dt_error *err);
void text_free(text_stream *t);

/* Makes room for `len` more bytes, so that pushing them cannot fail. */
dt_status text_reserve(text_stream *t, size_t len, dt_error *err);

/* Appends the bytes of one token. If they complete a stop string, the text is cut where the earliest one begins,
 * t->stopped is set, and nothing more may be pushed. */
dt_status text_push(text_stream *t, const char *bytes, size_t len, dt_error *err);

/* Returns the next bytes that can be shown; *len may be 0. With `final` these are all remaining bytes, even an
 * incomplete character. The pointer is valid until the next push. */
const char *text_take(text_stream *t, bool final, size_t *len);

/* Copies n bytes and replaces every maximal invalid UTF-8 subpart by U+FFFD, as lossy decoding in Python and Rust does.
 * The copy is malloc'd and NUL-terminated; NULL if out of memory. *out_len is its length without the NUL; out_len may
 * be NULL. */
char *text_to_utf8(const char *bytes, size_t n, size_t *out_len);

#endif
