/* Products of a weight matrix with the rows of a pass: see matmul.cu. */
#ifndef DT_CUDA_MATMUL_CUH
#define DT_CUDA_MATMUL_CUH

#include "internal.cuh"

/* What is multiplied: tiles [first_tile, end_tile) of the matrix, with rows of `input`, or from `second_from` on of
 * `second`, as long ones, tiled. Rows at and behind *n are not computed. */
struct product {
  matrix m;
  int first_tile, end_tile, second_from;
  operand input, second;
  const int *n; /* on the device */
};

/* Sums over the parts of k, as they are: out[part][row][output]. */
struct store {
  float *out;
  size_t part_stride;
  int outputs;
};

/* What becomes of q, k and v (heads in this order, then nothing, then from inner_from on the MLP's inner row): the bias is
 * added, queries and keys rotate (unless they are normalized first: see heads.cu), keys and values go to their slots of the
 * cache. */
struct spread {
  const float2 *bias;
  int inner_from; /* pair */
  int heads, kv_heads, head_dim, dim, rotary;
  bool rotates;
  const float *cosine, *sine;
  const int32_t *position, *sequence, *slot;
  uint16_t *q;
  /* of the layer: sequence s, head g, slot p at ((s * sequence_stride + g) * slots + p) * dim */
  uint16_t *keys, *values;
  size_t sequence_stride;
  int slots;
  operand inner;
  int inter;
  dt_act_kind act;
  bool gated;
};

/* `rows` is a bucket: 8, 16, 32, 64, or a multiple of WIDE_ROWS. */
cudaError_t multiply_store(cudaStream_t, number type, const product &, const store &, int rows);
cudaError_t multiply_spread(cudaStream_t, number type, const product &, const spread &, int rows);
cudaError_t multiply_prepare(number type); /* once per device, before the first of this type */

#endif
