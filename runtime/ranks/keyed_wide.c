/* XXH3 with AVX2, compiled on x86-64 only: see keyed.h. */
#include "ranks/keyed.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

keyed_hash keyed_wide(const unsigned char key[KEYED_KEY], const void *bytes, size_t n) {
  XXH128_hash_t hash = XXH3_128bits_withSecret(bytes, n, key, KEYED_KEY);
  return (keyed_hash){{hash.low64, hash.high64}};
}
