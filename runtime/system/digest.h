/* Digests of bytes: BLAKE2b-256 (libsodium). Whoever can choose the bytes still finds no two that have the same one, so a digest
 * may stand for them as a key. A plain hash (FNV) may not: a twin of a text is made in seconds (tests/data/twins). */
#ifndef DT_DIGEST_H
#define DT_DIGEST_H

#include <stddef.h>

#define DIGEST_TEXT 65 /* bytes of one as text: 64 hexadecimal digits and the NUL */

/* One that is being made. */
typedef struct {
  _Alignas(64) unsigned char state[384];
} digest;

/* kind: of what, a short word; digests of other kinds never agree with it. */
void digest_begin(digest *d, const char *kind);
/* n bytes more. What follows one another is taken as one: add lengths where their bounds matter. */
void digest_add(digest *d, const void *bytes, size_t n);
/* A text with its NUL, so that two in a row are no other two. */
void digest_add_text(digest *d, const char *text);
void digest_end(digest *d, char text[DIGEST_TEXT]);

#endif
