/* The hash from which synthetic distributions and experts are computed. */
#ifndef DT_FAKE_MIX_H
#define DT_FAKE_MIX_H

#include <stdint.h>

static inline uint64_t fake_mix(uint64_t h) { /* the finalizer of splitmix64 */
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

#endif
