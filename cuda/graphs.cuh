/* The graphs of a cache's passes: see graphs.cu. */
#ifndef DT_CUDA_GRAPHS_H
#define DT_CUDA_GRAPHS_H

#include "steps.cuh"

typedef void (*pass_kernels)(enqueuer *); /* launches the kernels of a pass */

/* Starts the kernels of a pass whose rows are on their way to the device: as a graph, if the backend uses graphs and
 * there is memory for it, otherwise one by one. */
cudaError_t start_pass(const dt_weights *, dt_cache *, pass_shape, pass_kernels);
cudaError_t start_one_by_one(const dt_weights *, dt_cache *, pass_shape, pass_kernels);

#endif
