/* Queries and keys that are normalized before they rotate: see heads.cu. */
#ifndef DT_CUDA_HEADS_CUH
#define DT_CUDA_HEADS_CUH

#include "matmul.cuh"

struct head_norms {
  const int *n;                  /* on the device */
  const float2 *q_norm, *k_norm; /* [head_dim / 2] */
  float eps;
};

/* Queries and keys lie where the spread, which did not rotate them, has put them; and are left there. */
cudaError_t normalize_heads(cudaStream_t, number type, spread, const head_norms &, int rows);

#endif
