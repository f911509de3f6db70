/* The text of one sequence as it grows: bytes of tokens in, bytes that may be shown out. Holds back half a character
 * and whatever may be the start of a stop string; finds stop strings across token borders. Pure: no I/O. */
#ifndef DT_TEXT_H
#define DT_TEXT_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char *bytes; /* all bytes pushed so far, raw (cut at a stop string once stopped) */
  size_t len, capacity;
  size_t shown; /* bytes[0..shown) were handed out */
  char **stop;  /* own copies */
  size_t *stop_len;
  int n_stop;
  bool stopped; /* a stop string was completed: bytes ends right before it */
} text_stream;

dt_status text_init(text_stream *t, const char *const *stop, int n_stop, dt_error *err);
/* One more, which must not be empty. */
dt_status text_add_stop(text_stream *t, const char *stop, dt_error *err);
void text_free(text_stream *t);

/* Room for `len` more bytes: pushing them cannot fail. */
dt_status text_reserve(text_stream *t, size_t len, dt_error *err);

/* Appends one token's bytes. Sets t->stopped when they complete a stop string (the earliest in the text; of two that
 * begin at the same place, either cuts at that place). No push after that. */
dt_status text_push(text_stream *t, const char *bytes, size_t len, dt_error *err);

/* The next bytes that may be shown; *len may be 0. With `final` everything that is left, an unfinished character too.
 * The pointer is valid until the next push. */
const char *text_take(text_stream *t, bool final, size_t *len);

/* A malloc'd, NUL-terminated copy of n bytes in which every maximal invalid UTF-8 subpart is U+FFFD (as Python's and
 * Rust's lossy decoding do); NULL when out of memory. *out_len (may be NULL) without the NUL. */
char *text_to_utf8(const char *bytes, size_t n, size_t *out_len);

#endif
