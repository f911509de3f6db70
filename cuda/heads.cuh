/* Norms of queries and keys before their rotation: see heads.cu. */
#ifndef DT_CUDA_HEADS_CUH
#define DT_CUDA_HEADS_CUH

#include "matmul.cuh"

struct head_norms {
  const int *n;                  /* on the device */
  const float2 *q_norm, *k_norm; /* [head_dim / 2] */
  float eps;
};

/* Normalizes and rotates queries and keys in place; the spread has written them without rotating them. */
cudaError_t normalize_heads(const queue &, number type, spread, const head_norms &, int rows);

#endif
