/* What is kept of the logits: see logits.cu. */
#ifndef DT_CUDA_LOGITS_CUH
#define DT_CUDA_LOGITS_CUH

#include "internal.cuh"

struct reduction {
  const pass_header *header; /* wanted rows, candidates, ids that take part */
  bool top;                  /* candidates and the softmax; else the argmax over all ids */
  int vocab;
  const float *logits; /* [ROWS][vocab] */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][CHECK_TOP] */
  pass_results results;
};

cudaError_t reduce_logits(cudaStream_t, const reduction &, int rows);

#endif
