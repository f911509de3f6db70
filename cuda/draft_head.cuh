/* The steps of a draft head before its layer: see draft_head.cu. */
#ifndef DT_CUDA_DRAFT_HEAD_CUH
#define DT_CUDA_DRAFT_HEAD_CUH

#include "steps.cuh"

/* Runs all steps before q, k and v. Returns what x takes up next: in a head without a layer, its last step. */
entry head_begin(enqueuer *);
const operand &head_reads(const dt_weights *);

#endif
