/* Normalizes a text, in a sequence of steps, before it is split. */
#ifndef DT_NORMALIZE_H
#define DT_NORMALIZE_H

#include "system/status.h"

#include <stddef.h>

typedef enum {
  NORMALIZE_NFC,
  NORMALIZE_PREPEND, /* `to` goes before a text that is not empty */
  NORMALIZE_REPLACE  /* every `from` becomes `to` */
} normalize_kind;

typedef struct {
  normalize_kind kind;
  char *from, *to; /* owned by the step; NULL if the kind does not use it */
  size_t from_len, to_len;
} normalize_step;

/* Normalizes s, n >= 1 bytes of valid UTF-8; NUL is allowed. *out is NULL if nothing changed: use s then. Otherwise
 * *out is malloc'd; the caller frees it. DT_EINPUT: the result would be longer than buffer_growth(n), far more than any
 * real tokenizer needs. */
dt_status normalize_text(const normalize_step *steps, int n_steps, const char *s, size_t n, char **out, size_t *out_n,
                         dt_error *err);

void normalize_free(normalize_step *steps, int n_steps);

#endif
