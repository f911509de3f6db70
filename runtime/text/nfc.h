/* Unicode normalization form C of UTF-8 text, in linear time, with the tables of utf8proc. */
#ifndef DT_NFC_H
#define DT_NFC_H

#include "system/status.h"

#include <stddef.h>

/* Normalizes s, n bytes of valid UTF-8; NUL is allowed. *out is NULL if the text has no character that normalization
 * could change: use s then. Otherwise *out is malloc'd; the caller frees it. */
dt_status nfc(const char *s, size_t n, char **out, size_t *out_n, dt_error *err);

#endif
