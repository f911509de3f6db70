/* Digests of bytes: BLAKE2b-256 (libsodium). Nobody can make two texts with one digest, so a digest is a safe key. A
 * plain hash (FNV) is not: a second text with the same hash is made in seconds (tests/data/twins). */
#ifndef DT_DIGEST_H
#define DT_DIGEST_H

#include <stddef.h>

#define DIGEST_TEXT 65 /* bytes of one as text: 64 hexadecimal digits and the NUL */

/* A digest in progress. */
typedef struct {
  _Alignas(64) unsigned char state[384];
} digest;

/* kind: a short word; digests of different kinds never agree. */
void digest_begin(digest *d, const char *kind);
/* Adds n bytes. Adjacent pieces count as one: add their lengths where borders matter. */
void digest_add(digest *d, const void *bytes, size_t n);
/* Adds a text with its NUL, which marks its border. */
void digest_add_text(digest *d, const char *text);
void digest_end(digest *d, char text[DIGEST_TEXT]);

#endif
