/* How every kernel is launched: on the backend's stream, as a dependent of the kernel before it (see dependency_wait in
 * device.cuh), also while a graph is captured. */
#ifndef DT_CUDA_LAUNCH_CUH
#define DT_CUDA_LAUNCH_CUH

#include "internal.cuh"

template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, dim3 grid, int threads, size_t shared, void (*kernel)(P...), const A &...args) {
  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &dependent;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, P(args)...);
}

#endif
