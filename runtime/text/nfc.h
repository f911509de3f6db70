/* Unicode normalization form C of UTF-8 text, in time linear in its length. Tables: utf8proc. */
#ifndef DT_NFC_H
#define DT_NFC_H

#include "system/status.h"

#include <stddef.h>

/* s is valid UTF-8; NUL is allowed. *out = NULL when the text has no character that normalization could change: use s.
 * Otherwise *out is malloc'd and the caller's. */
dt_status nfc(const char *s, size_t n, char **out, size_t *out_n, dt_error *err);

#endif
