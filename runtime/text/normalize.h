/* Normalizing a text before it is split: steps, one after the other. */
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
  char *from, *to; /* the step's own; NULL where the kind has none */
  size_t from_len, to_len;
} normalize_step;

/* s is valid UTF-8, n >= 1; NUL is allowed. *out = NULL: nothing changed, use s. Otherwise *out is malloc'd and the
 * caller's. DT_EINPUT: it would be longer than buffer_growth(n), which no tokenizer of use comes near. */
dt_status normalize_text(const normalize_step *steps, int n_steps, const char *s, size_t n, char **out, size_t *out_n,
                         dt_error *err);

void normalize_free(normalize_step *steps, int n_steps);

#endif
