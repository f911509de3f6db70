/* Products of a chunk of a prompt: see chunk.cu. */
#ifndef DT_CUDA_CHUNK_CUH
#define DT_CUDA_CHUNK_CUH

#include "steps.cuh"

/* cudaErrorNotSupported: the library cannot compute the product. chunk_epilogue computes tiles below `end` only. */
cudaError_t chunk_store(const enqueuer *, const matrix &, const operand &input); /* to `partial`, as one sum */
cudaError_t chunk_epilogue(const enqueuer *, int index, const matrix &, int end, int inner_from);

#endif
