/* Attention of the rows of a pass: see attention.cu. */
#ifndef DT_CUDA_ATTENTION_CUH
#define DT_CUDA_ATTENTION_CUH

#include "internal.cuh"

struct attention {
  pass_rows rows;
  int heads, kv_heads, head_dim;
  float scale;
  const uint16_t *q; /* [ROWS][heads][dim] */
  /* of the layer: sequence s, head g, slot p at ((s * sequence_stride + g) * slots + p) * dim */
  const uint16_t *keys, *values;
  size_t sequence_stride;
  int slots, splits;
  float *part;    /* [ROWS][heads][splits][dim] */
  float2 *weight; /* [ROWS][heads][splits] */
  unsigned *done; /* [ROWS][heads] all zero before and after */
  operand out;    /* head h at column h * head_dim */
};

/* `dim` is the padded width of a head, `units` at least what rows.header says. */
cudaError_t attend(cudaStream_t, number type, int dim, const attention &, int units);
cudaError_t attention_prepare(number type, int dim); /* once per device, before the first of this width */

#endif
