/* FNV-1a 64, for hash tables, file names and hashes of outputs. It is not secure: texts with the same hash are easy to
 * make. If that matters, use system/digest.h. */
#ifndef DT_HASH_H
#define DT_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

/* Hashes n bytes, starting from HASH_START or from the hash of the bytes before them. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
  for (const unsigned char *b = bytes; n > 0; n--) hash = (hash ^ *b++) * 0x100000001b3u;
  return hash;
}

#endif
