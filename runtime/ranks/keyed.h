/* Hashes under a key, as fast as memory is read (XXH3, xxHash), to compare bytes of two processes. The key is random
 * each time, so nobody can prepare other bytes with the same hash. For hashes that are stored, or compared after the
 * key is known, use digest.h. */
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
/* The same number by instructions that every processor has, and by AVX2: half the time for bytes that are in a
 * cache. */
keyed_hash keyed_narrow(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
keyed_hash keyed_wide(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
/* The hash of a hash and more bytes, for data in pieces. */
keyed_hash keyed_more(const unsigned char key[KEYED_KEY], keyed_hash before, const void *bytes, size_t n);

#endif
