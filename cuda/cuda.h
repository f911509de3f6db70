/* The CUDA backend: f16 or bf16 weights, products by tensor cores with f32 sums, an f32 residual stream, caches of 16
 * bits or in q8. It is exact as backend.h demands; README.md in this folder says how. */
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
