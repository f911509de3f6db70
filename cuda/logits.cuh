/* What is kept of the logits: see logits.cu, and draw.cu for tokens that are drawn from a part of the ids. */
#ifndef DT_CUDA_LOGITS_CUH
#define DT_CUDA_LOGITS_CUH

#include "internal.cuh"

struct reduction {
  pass_rows rows;
  bool top;   /* candidates and the softmax; else the argmax over all ids */
  bool quiet; /* of the logits, whoever samples */
  int outputs;
  int ahead;           /* how many positions behind a model's is the token that the rows guess: 0 but for a head */
  const int32_t *ids;  /* [outputs] whose logits they are; null: those of their numbers */
  const float *logits; /* [ROWS][outputs] */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][CHECK_TOP] */
  pass_results results;
};

static __device__ __forceinline__ int position_of(const reduction &a, int j) {
  return a.rows.position[a.rows.wanted[j]] + a.ahead;
}

cudaError_t reduce_logits(cudaStream_t, const reduction &, int rows);
cudaError_t draw_filtered(cudaStream_t, const reduction &, int rows); /* after that: it takes up the parts */

#endif
