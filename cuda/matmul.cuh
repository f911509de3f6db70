/* Products of a weight matrix with the rows of a pass: see matmul.cu. */
#ifndef DT_CUDA_MATMUL_CUH
#define DT_CUDA_MATMUL_CUH

#include "internal.cuh"

/* A product: tiles [first_tile, end_tile) of the matrix with rows of `input`. Tiles from `second_from` on use rows of
 * `second` instead, which has the same length and layout. Rows from *n on are not computed. */
struct product {
  matrix m;
  int first_tile, end_tile, second_from;
  operand input, second;
  const int *n; /* on the device */
};

/* Stores sums over the parts of k: out[part][row][output]. */
struct plain_epilogue {
  float *out;
  size_t part_stride;
  int outputs;
};

/* Spreads the outputs: first the heads of q, k and v, then padding, then from inner_from on the MLP's inner row. Adds
 * the bias, rotates queries and keys (unless they are normalized first: see heads.cu), and writes keys and values to
 * their slots of the cache. */
struct layer_epilogue {
  const float2 *bias;
  int inner_from; /* the first pair of the inner row */
  int heads, kv_heads, head_dim, dim, rotary;
  bool rotates;
  const float *cosine, *sine;
  const int32_t *position, *sequence, *slot;
  uint16_t *q;
  /* of the layer; the key or value of sequence s, head g, slot p is at s * sequence_stride + (g * slots + p) * dim */
  uint16_t *keys, *values;
  size_t sequence_stride;
  int slots;
  operand inner;
  int inter;
  dt_act_kind act;
  bool gated;
};

/* `rows` is a bucket: 8, 16, 32, 64, or a multiple of WIDE_ROWS. */
cudaError_t multiply_plain(const queue &, const product &, const plain_epilogue &, int rows);
cudaError_t multiply_layer(const queue &, const product &, const layer_epilogue &, int rows);
cudaError_t multiply_prepare(number type); /* once per device, before the first call for this type */

#endif
