/* Attention of the rows of a pass: see attention.cu. */
#ifndef DT_CUDA_ATTENTION_CUH
#define DT_CUDA_ATTENTION_CUH

#include "internal.cuh"

struct attention {
  pass_rows rows;
  int heads, kv_heads, head_dim;
  int joined;         /* heads of a row that a block computes together; they share their keys */
  int inverse;        /* 256 / joined, rounded up: line / joined is line * inverse >> 8 for the lines of a unit */
  float scale, cap;   /* of scores; no cap: 0 */
  int window;         /* a row sees this many positions, up to its own; 0: all */
  const float *sinks; /* [heads] the score of one more key of each head, which has no value; null: none */
  const uint16_t *q;  /* [rows][heads][dim] */
  /* of the layer; the row of sequence s, head g, slot p is at s * sequence_stride + (g * slots + p) * row_length(), in
   * the elements of cache_format.cuh */
  const void *keys, *values;
  size_t sequence_stride;
  int slots, splits;
  float *part;    /* [rows][heads][splits][dim] */
  float2 *weight; /* [rows][heads][splits] */
  unsigned *done; /* [rows][heads] all zero before and after a launch */
  operand out;    /* head h at column h * head_dim */
};

/* The rows are those of one batch. `dim` is the padded width of a head; `units` is at least rows.header's. */
cudaError_t attend(const queue &, number type, cache_format, int dim, const attention &, int units);
cudaError_t attention_prepare(number type, cache_format,
                              int dim); /* once per device, before the first call for this width */

#endif
