/* Digests of bytes: BLAKE2b-256 (libsodium). Nobody can make two texts with the same digest, so a digest is a safe key.
 * A plain hash (FNV) is not: a second text with the same hash can be found in seconds (tests/data/twins). */
#ifndef DT_DIGEST_H
#define DT_DIGEST_H

#include <stddef.h>

#define DIGEST_TEXT 65 /* size of a digest as text: 64 hexadecimal digits and the NUL */

/* A digest in progress. */
typedef struct {
  _Alignas(64) unsigned char state[384];
} digest;

/* Begins a digest. kind: a short word; digests of different kinds are never equal. */
void digest_begin(digest *d, const char *kind);
/* Adds n bytes. Several calls give the same digest as one call with all bytes, so add lengths too if borders matter. */
void digest_add(digest *d, const void *bytes, size_t n);
/* Adds a text with its NUL, which marks its border. */
void digest_add_text(digest *d, const char *text);
void digest_end(digest *d, char text[DIGEST_TEXT]);

#endif
