/* FNV-1a 64: slots of tables, names of files that say themselves what they are for, hashes of outputs. It is no key of what
 * others may write: texts of the same hash are easily made (runtime/system/digest.h). */
#ifndef DTL_HASH_H
#define DTL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

/* Of n bytes, from HASH_START or from the hash of what came before them. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
  for (const unsigned char *b = bytes; n > 0; n--) hash = (hash ^ *b++) * 0x100000001b3u;
  return hash;
}

#endif
