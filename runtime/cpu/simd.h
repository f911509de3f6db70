/* Vectors of sixteen f32 lanes, in four implementations. Every kernel is written once with these operations and
 * compiled once per variant (VARIANT is its name, as in CMakeLists.txt). All variants therefore perform the same
 * operations in the same order and give the same bits. Three rules ensure this: each operation is IEEE-754 and rounds
 * once; sums across lanes have one fixed order (v_sum); nothing depends on the width of a register. */
#ifndef DT_CPU_SIMD_H
#define DT_CPU_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMD_PASTE_(a, b) a##_##b
#define SIMD_PASTE(a, b) SIMD_PASTE_(a, b)
#define V(name) SIMD_PASTE(name, VARIANT) /* the name of a function in this variant */
#if defined(__AVX2__) || defined(SIMD_NEON)
#define VI static inline __attribute__((always_inline))
#else
#define VI static inline /* for loops over lanes: gcc would need minutes to inline all of them */
#endif

#if defined(SIMD_NEON) /* a flag of this build: AArch64 always has NEON, but the scalar variant must not use it */
#include "simd_neon.h"
#elif defined(__AVX512F__)
#include "simd_avx512.h"
#elif defined(__AVX2__)
#include "simd_avx2.h"
#else
#include "simd_scalar.h"
#endif

/* Keeps the first n lanes of a and sets the other lanes to zero. */
VI v16 v_first(v16 a, int n) {
  float f[16];
  v_store(f, a);
  for (int i = n; i < 16; i++) f[i] = 0.0f;
  return v_load(f);
}

#endif
