/* The steps of a draft head before its layer: see draft_head.cu. */
#ifndef DT_CUDA_DRAFT_HEAD_CUH
#define DT_CUDA_DRAFT_HEAD_CUH

#include "steps.cuh"

/* Runs all steps before q, k and v. Returns the entry that x takes up next; a head without a layer ends with it. */
entry head_begin(enqueuer *);
/* Stores the features of the rows, where they are neither x nor its norm: they are computed from normed1. */
void head_end(enqueuer *);
/* Whether the rows only write keys and values, of what head_reads() returns. */
bool head_keys_only(const enqueuer *);
/* Whether its layers begin with norms, as a model's do. */
bool head_norms(const dt_weights *);
const operand &head_reads(const dt_weights *);

#endif
