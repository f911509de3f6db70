/* The launch of every kernel: on the backend's stream; dependent on the kernel before it (see dependency_wait in
 * device.cuh) if the queue says so, also while a graph is captured. All kernels divide a multiprocessor's
 * memory in the same way, since kernels with different divisions cannot run side by side. As much of it as possible is
 * shared memory, since the products' rings and the attention's sums fill a multiprocessor. */
#ifndef DT_CUDA_LAUNCH_CUH
#define DT_CUDA_LAUNCH_CUH

#include "internal.cuh"

template <class... P, class... A>
cudaError_t launch(const queue &to, dim3 grid, int threads, size_t shared, void (*kernel)(P...), const A &...args) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[0].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = shared;
  config.stream = to;
  config.attrs = attributes;
  config.numAttrs = to.overlaps ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, P(args)...);
}

#endif
