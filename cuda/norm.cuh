/* What stands between the products: see norm.cu. */
#ifndef DT_CUDA_NORM_CUH
#define DT_CUDA_NORM_CUH

#include "internal.cuh"

/* For row i of the pass, or (wanted given) for row wanted[i]: x becomes the embedding of its token, or x plus the parts of
 * a product and its bias; then up to two norms of x are written as row i of y1 and y2, in the weights' type. */
struct norm_job {
  const int *n;          /* on the device */
  const int32_t *wanted; /* null: all */
  int hidden;
  float *x; /* [ROWS][hidden] */
  const uint16_t *embed;
  const int32_t *token; /* null: no embedding, but: */
  const float *parts;   /* [count][part_stride], of which [ROWS][hidden] */
  int count;
  size_t part_stride;
  const float *bias;
  dt_norm_kind kind;
  float eps;
  const float *weight1, *bias1, *weight2, *bias2; /* weight2 null: one norm */
  operand y1, y2;
};

cudaError_t normalize(cudaStream_t, number type, const norm_job &, int rows);

#endif
