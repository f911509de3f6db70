/* Norms of queries and keys before their rotation, and gates of heads: see heads.cu. */
#ifndef DT_CUDA_HEADS_CUH
#define DT_CUDA_HEADS_CUH

#include "matmul.cuh"

struct head_norms {
  const int *n;                  /* on the device */
  const float2 *q_norm, *k_norm; /* for the pairs of a head or, with `wide`, of all heads */
  bool wide;                     /* all queries of a row are normalized together, and likewise its keys */
  bool values;                   /* each head's values are normalized, too, without weights; not with `wide` */
  float eps;
  bool rotates;
};

/* Normalizes queries and keys in place and, if asked, rotates them; the layer_epilogue has written them as they were.
 */
cudaError_t normalize_heads(const queue &, number type, layer_epilogue, const head_norms &, int rows);

/* Gates of heads: the numbers of a row of `out` are multiplied by their sigmoids. */
struct head_gates {
  const int *n; /* on the device */
  int numbers;
  const float *gates; /* [rows][numbers] */
  operand out;
};
cudaError_t gate_heads(const queue &, number type, const head_gates &, int rows);

#endif
