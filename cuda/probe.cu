/* The read bandwidth: a sum over more memory than the second-level cache holds. */
#include "launch.cuh"

constexpr int THREADS = 256, UNROLL = 8;

static __global__ void k_read(const uint4 *data, size_t count, unsigned *sink) {
  dependency_release();
  dependency_wait();
  size_t stride = (size_t)gridDim.x * blockDim.x;
  unsigned sum = 0;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride * UNROLL) {
    uint4 v[UNROLL];
#pragma unroll
    for (int j = 0; j < UNROLL; j++)
      v[j] = i + j * stride < count ? load_stream(data + i + j * stride) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < UNROLL; j++) sum += v[j].x + v[j].y + v[j].z + v[j].w;
  }
  if (sum == 1) *sink = sum; /* so that the sum is not optimized away */
}

double cuda_read_bandwidth(dt_backend *b) {
  int processors = 0, l2 = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, b->device);
  cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, b->device);
  size_t bytes = 16 * (size_t)l2, account = 0;
  arena data = {};
  data.used = bytes + 256;
  cudaEvent_t from = nullptr, to = nullptr;
  double best = 0.0;
  cudaError_t e =
      arena_open(b, &data, "the bandwidth probe", &account, nullptr) == DT_OK ? cudaSuccess : cudaErrorMemoryAllocation;
  if (e == cudaSuccess) e = cudaEventCreate(&from);
  if (e == cudaSuccess) e = cudaEventCreate(&to);
  for (int i = 0; i < 10 && e == cudaSuccess; i++) {
    float ms = 0.0f;
    const uint4 *numbers = reinterpret_cast<const uint4 *>(data.base);
    unsigned *sink = reinterpret_cast<unsigned *>(data.base + bytes);
    e = cudaEventRecord(from, b->stream);
    if (e == cudaSuccess)
      e = launch(b->stream, dim3((unsigned)(processors * 8)), THREADS, 0, k_read, numbers, bytes / 16, sink);
    if (e == cudaSuccess) e = cudaEventRecord(to, b->stream);
    if (e == cudaSuccess) e = cudaEventSynchronize(to);
    if (e == cudaSuccess) e = cudaEventElapsedTime(&ms, from, to);
    if (e == cudaSuccess && ms > 0.0f && (double)bytes / (1e-3 * (double)ms) > best)
      best = (double)bytes / (1e-3 * (double)ms);
  }
  if (from) cudaEventDestroy(from);
  if (to) cudaEventDestroy(to);
  arena_close(&data, &account);
  return best;
}
