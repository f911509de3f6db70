/* How every kernel is launched: on the backend's stream, as a dependent of the kernel before it (see dependency_wait in
 * device.cuh), also while a graph is captured. */
#ifndef DT_CUDA_LAUNCH_CUH
#define DT_CUDA_LAUNCH_CUH

#include "internal.cuh"

static inline bool can_overlap() { /* devices before Hopper know no dependent launch */
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

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
  config.numAttrs = can_overlap() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, P(args)...);
}

#endif
