/* The steps of a draft head before its layer: see draft_head.cu. */
#ifndef DT_CUDA_DRAFT_HEAD_CUH
#define DT_CUDA_DRAFT_HEAD_CUH

#include "steps.cuh"

/* Runs all steps before q, k and v. Returns the entry that x takes up next; a head without a layer ends with it. */
entry head_begin(enqueuer *);
const operand &head_reads(const dt_weights *);

#endif
