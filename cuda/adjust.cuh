/* Logit adjustments of the wanted rows of a pass, and log-probabilities of chosen or given ids: see adjust.cu. */
#ifndef DT_CUDA_ADJUST_CUH
#define DT_CUDA_ADJUST_CUH

#include "internal.cuh"

struct adjustment_job {
  pass_rows rows;
  int outputs;
  const int32_t *ids; /* [outputs] ids of the logits, rising; null: 0, 1, .. */
  float *logits;      /* [ROWS][outputs] */
  double *log_sums;   /* [ROWS] see reduction */
  pass_results results;
};

/* Copies the adjustments of n results, from result `from` on, to the device, and lets the staged header point to them.
 * Starts the copy only. */
cudaError_t stage_adjustments(dt_cache *, const pass_rows &staged, const dt_out *, int from, int n);
void free_adjustments(dt_cache *);

cudaError_t adjust_logits(const queue &, const adjustment_job &, int rows);
/* After adjust_logits and the choice: writes results.logp. */
cudaError_t write_logp(const queue &, const adjustment_job &);

#endif
