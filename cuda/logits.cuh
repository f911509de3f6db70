/* Reduces logits to results: see logits.cu, and sample.cu for tokens sampled among the allowed ids. */
#ifndef DT_CUDA_LOGITS_CUH
#define DT_CUDA_LOGITS_CUH

#include "internal.cuh"

struct reduction {
  pass_rows rows;
  bool top;   /* true: candidates and the softmax; false: the argmax over all ids */
  bool quiet; /* candidates of the logits, without noise even if the row is sampled */
  int outputs;
  int ahead;           /* positions from a model's next token to the token that a row guesses; 0 except for a head */
  const int32_t *ids;  /* [outputs] ids of the logits; null: 0, 1, .. */
  const float *logits; /* [ROWS][outputs] */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][TOP] */
  sample_row *samples; /* [ROWS] */
  double *log_sums;    /* [ROWS] `quiet`: logarithms of the sums of exp(logit); NaN if one is not usable */
  pass_results results;
};

static __device__ __forceinline__ int position_of(const reduction &a, int j) {
  return a.rows.position[a.rows.wanted[j]] + a.ahead;
}

cudaError_t reduce_logits(const queue &, const reduction &, int rows);
cudaError_t sample_filtered(const queue &, const reduction &, int rows); /* after reduce_logits, whose parts it reads */

#endif
