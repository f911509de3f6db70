/* Hashes with a secret key, to compare bytes of two processes, at the speed of reading memory (XXH3 of xxHash). The key
 * is random each time, so nobody can prepare different bytes with the same hash. For hashes that are stored, or
 * compared after the key is known, use digest.h. */
#ifndef DT_KEYED_H
#define DT_KEYED_H

#include <stddef.h>
#include <stdint.h>

#define KEYED_KEY 192 /* bytes */

typedef struct {
  uint64_t half[2];
} keyed_hash;

void keyed_new_key(unsigned char key[KEYED_KEY]);
keyed_hash keyed_of(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
/* The same hash, computed with instructions that every processor has, and with AVX2, which takes half the time if the
 * bytes are in a cache of the processor. */
keyed_hash keyed_narrow(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
keyed_hash keyed_wide(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
/* Returns the hash of a previous hash and more bytes, for data in pieces. */
keyed_hash keyed_more(const unsigned char key[KEYED_KEY], keyed_hash before, const void *bytes, size_t n);

#endif
