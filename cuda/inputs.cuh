/* The numbers of a token that each layer reads after its blocks: see dt_model_desc and inputs.cu. */
#ifndef DT_CUDA_INPUTS_CUH
#define DT_CUDA_INPUTS_CUH

#include "steps.cuh"

/* Computes the inputs of all layers for the rows of a pass. The embeddings enter x: returns what enters it next. */
entry inputs_begin(enqueuer *);

/* Adds what the layer makes of its inputs to x, which `enters` completes. Returns what enters x next. */
entry inputs_add(enqueuer *, int layer, const entry &enters);

#endif
