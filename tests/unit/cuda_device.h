/* The device that tests of the CUDA backend run on, and the models that they run there. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "cuda.h"
#include "random_model.h"

#include <stdio.h>

#if defined(CUDA_EMU)
#include "faults.h"
static const bool emulated = true;
#else
static const bool emulated = false;
#endif

/* Ends a test program as skipped if there is no GPU. */
static inline void cuda_device_or_skip(void) {
  if (dt_cuda_ops.present()) return;
  puts("skipped: there is no GPU");
  exit(77);
}

/* The plain random shapes. The backend does not support f32 weights, so those become bf16. */
static inline model_shape cuda_shape(int i) {
  model_shape shape = random_shapes[i];
  if (shape.dtype == DT_F32) shape.dtype = DT_BF16;
  return shape;
}

/* The root mean square of the difference, relative to the root mean square of the CPU's logits. */
static inline double logits_difference(const float *a, const float *b, size_t n) {
  double d = 0, size = 0;
  for (size_t i = 0; i < n; i++) {
    assert_true(isfinite(a[i]) && isfinite(b[i]));
    d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    size += (double)b[i] * (double)b[i];
  }
  return sqrt(d / size);
}

/* How large that difference may be, due to 16-bit activations. */
static inline double rounding_of(dt_dtype dtype) { return dtype == DT_F16 ? 1.5e-3 : 8e-3; }

#endif
