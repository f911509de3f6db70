/* The CUDA backend: F16, BF16 and quantized weights, products on tensor cores with f32 sums, an f32 residual stream,
 * and caches with 16 bits or in q8. It meets the exactness contract of backend.h; README.md in this folder explains
 * how. */
#ifndef DT_CUDA_H
#define DT_CUDA_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif
extern const dt_backend_ops dt_cuda_ops;
#ifdef __cplusplus
}
#endif

#endif
