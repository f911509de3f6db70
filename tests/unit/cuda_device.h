/* Which device the tests of the CUDA backend run on, and the models they run there. */
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

/* Without a GPU a program of such tests ends here, as skipped. */
static inline void cuda_device_or_skip(void) {
  if (dt_cuda_ops.present()) return;
  puts("skipped: there is no GPU here");
  exit(77);
}

/* The random shapes, with f32 weights, which the backend refuses, made bf16. */
static inline model_shape cuda_shape(int i) {
  model_shape shape = random_shapes[i];
  if (shape.dtype == DT_F32) shape.dtype = DT_BF16;
  return shape;
}

#endif
