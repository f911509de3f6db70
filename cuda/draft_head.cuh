/* What a draft head does before its layer: see draft_head.cu. */
#ifndef DT_CUDA_DRAFT_HEAD_CUH
#define DT_CUDA_DRAFT_HEAD_CUH

#include "steps.cuh"

/* Up to what q, k and v read; what x is to take up next: of a head without a layer, which ends with that. */
entry head_begin(enqueuer *);
const operand &head_reads(const dt_weights *);

#endif
