/* XXH3 under a key: see keyed.h. */
#include "ranks/keyed.h"

#include <sodium.h>
#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(KEYED_KEY >= XXH3_SECRET_SIZE_MIN, "long enough for XXH3");

void keyed_new_key(unsigned char key[KEYED_KEY]) { randombytes_buf(key, KEYED_KEY); }

keyed_hash keyed_narrow(const unsigned char key[KEYED_KEY], const void *bytes, size_t n) {
  XXH128_hash_t hash = XXH3_128bits_withSecret(bytes, n, key, KEYED_KEY);
  return (keyed_hash){{hash.low64, hash.high64}};
}

static bool is_wide(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

keyed_hash keyed_of(const unsigned char key[KEYED_KEY], const void *bytes, size_t n) {
  return is_wide() ? keyed_wide(key, bytes, n) : keyed_narrow(key, bytes, n);
}

keyed_hash keyed_more(const unsigned char key[KEYED_KEY], keyed_hash before, const void *bytes, size_t n) {
  keyed_hash both[] = {before, keyed_of(key, bytes, n)};
  return keyed_of(key, both, sizeof both);
}
