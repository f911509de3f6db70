/* The factor and the cap of logits: see bound.cu. */
#ifndef DT_CUDA_BOUND_CUH
#define DT_CUDA_BOUND_CUH

#include "internal.cuh"

struct bound_job {
  const pass_header *header; /* on the device: the number of wanted rows */
  int outputs;
  float *logits;    /* [ROWS][outputs] */
  float scale, cap; /* 1: no factor; 0: no cap */
};

/* Changes the logits of all wanted rows in place; nothing is launched for a model that has neither. */
cudaError_t bound_logits(const queue &, const bound_job &, int rows);

#endif
