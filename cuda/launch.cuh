/* How every kernel is launched: on the backend's stream, as a dependent of the kernel before it (see dependency_wait in
 * device.cuh) if the stream is one for that, also while a graph is captured; and all with one division of a multiprocessor's
 * memory, since kernels that want different ones do not run beside each other. As much of it as can be is shared memory:
 * the products' rings and the attention's sums are what fills a multiprocessor. */
#ifndef DT_CUDA_LAUNCH_CUH
#define DT_CUDA_LAUNCH_CUH

#include "internal.cuh"

/* A stream for dependent launches waits for no other stream either: see stream_open. */
static inline bool can_overlap(cudaStream_t stream) {
  unsigned flags = 0;
  return cudaStreamGetFlags(stream, &flags) == cudaSuccess && flags == cudaStreamNonBlocking;
}

template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, dim3 grid, int threads, size_t shared, void (*kernel)(P...), const A &...args) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[0].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = can_overlap(stream) ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, P(args)...);
}

#endif
