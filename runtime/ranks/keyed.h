/* Hashes under a key, as fast as memory is read (XXH3, xxHash): for comparing bytes that are here with bytes that are elsewhere.
 * The key is drawn anew each time, so that nobody can prepare bytes that have the hash of others; what is kept, or compared
 * with what others choose once they know the key, wants digest.h. */
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
/* The same number by instructions that every processor has, and by AVX2: half the time for bytes that are in a cache. */
keyed_hash keyed_narrow(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
keyed_hash keyed_wide(const unsigned char key[KEYED_KEY], const void *bytes, size_t n);
/* Of a hash and more bytes, for what comes in pieces. */
keyed_hash keyed_more(const unsigned char key[KEYED_KEY], keyed_hash before, const void *bytes, size_t n);

#endif
