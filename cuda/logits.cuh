/* What is kept of the logits: see logits.cu, and draw.cu for tokens that are drawn from a part of the ids. */
#ifndef DT_CUDA_LOGITS_CUH
#define DT_CUDA_LOGITS_CUH

#include "internal.cuh"

struct reduction {
  pass_rows rows;
  bool top;   /* candidates and the softmax; else the argmax over all ids */
  bool quiet; /* of the logits, whoever samples */
  int vocab;
  const float *logits; /* [ROWS][vocab] */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][CHECK_TOP] */
  pass_results results;
};

cudaError_t reduce_logits(cudaStream_t, const reduction &, int rows);
cudaError_t draw_filtered(cudaStream_t, const reduction &, int rows); /* after that: it takes up the parts */

#endif
