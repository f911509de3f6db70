/* The part of CUDA that cuda/ uses, on the processor. To use it, put this folder before the toolkit's on the include
 * path, define CUDA_EMU, and compile the same .cu files as C++.
 *
 * Every thread of a block is a fiber. Blocks run one after the other, and launches run at once, so the emulation finds
 * wrong logic and, under the address sanitizer, wrong addresses. Shared memory is always dynamic, has exactly the
 * requested size, and is filled with NaN, as is fresh device memory.
 *
 * With CUDA_EMU_WATCH in the environment:
 * - If a dependent launch reads, before it waits, what earlier kernels write, it finds NaN. If it writes to device
 *   memory before it waits, this is an error.
 * - Blocks take turns: at a fence, or an atomic operation on device memory, other blocks run. Until then, or until the
 *   end of the grid, only the block itself sees what it wrote.
 * - Blocks run last first, and in every second block so do warps and lanes. This reveals most missing barriers.
 *
 * The emulation is strict where a device is lenient. These are errors, which are reported in one line before the
 * program ends: a collective whose threads do not all arrive, or arrive at different ones; a barrier that some thread
 * of the block has left; and a dependent launch whose thread ends without waiting. */
#ifndef CUDA_EMU_H
#define CUDA_EMU_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/* ---- types ---- */

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

/* ---- inside a kernel ---- */

inline dim3 threadIdx, blockIdx, blockDim, gridDim; /* of the running fiber */

namespace emu {
/* An operation of the threads of one warp together. apply() gets every lane's argument (null: not in the mask). */
struct collective {
  const char *name;
  void (*apply)(void *const arg[32], unsigned mask);
};
void arrive(const collective *c, unsigned mask, void *arg);
void barrier();
void waited();
void fence();
void atomic(const void *p, size_t bytes); /* an atomic operation has changed it */
unsigned char *shared_memory();
unsigned char *shared_memory(int bytes); /* of exactly this size */
/* Copies of up to 16 bytes. They complete when their thread waits for their group, and no earlier; until then the
 * destination holds NaN. */
void copy_begin(void *to, const void *from, size_t bytes);
void copies_commit();
void copies_wait(int left);
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

template <class T> struct exchange {
  T value;
  int source;
};
template <class T> void apply_exchange(void *const arg[32], unsigned mask) {
  T value[32];
  for (int i = 0; i < 32; i++)
    if (arg[i]) value[i] = static_cast<exchange<T> *>(arg[i])->value;
  for (int i = 0; i < 32; i++) {
    if (!arg[i]) continue;
    exchange<T> *e = static_cast<exchange<T> *>(arg[i]);
    if (e->source < 0 || e->source > 31 || !(mask >> e->source & 1))
      die("lane %d reads lane %d outside the mask", i, e->source);
    e->value = value[e->source];
  }
}
template <class T> T shuffle(const char *name, unsigned mask, T value, int source) {
  collective c = {name, apply_exchange<T>};
  exchange<T> e = {value, source};
  arrive(&c, mask, &e);
  return e.value;
}
} // namespace emu

inline void __syncthreads() { emu::barrier(); }
namespace emu {
struct ballot {
  bool yes;
  unsigned lanes;
};
inline void apply_ballot(void *const arg[32], unsigned mask) {
  unsigned lanes = 0;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1 && static_cast<ballot *>(arg[i])->yes) lanes |= 1u << i;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) static_cast<ballot *>(arg[i])->lanes = lanes;
}
} // namespace emu
inline unsigned __ballot_sync(unsigned mask, bool yes) {
  static const emu::collective c = {"__ballot_sync", emu::apply_ballot};
  emu::ballot b = {yes, 0};
  emu::arrive(&c, mask, &b);
  return b.lanes;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emu::shuffle("__syncwarp", mask, 0, (int)(threadIdx.x & 31)); }
template <class T> T __shfl_sync(unsigned mask, T v, int lane) { return emu::shuffle("__shfl_sync", mask, v, lane); }
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits) {
  return emu::shuffle("__shfl_xor_sync", mask, v, (int)(threadIdx.x & 31) ^ bits);
}
inline void __threadfence() { emu::fence(); }
template <class T> T atomicAdd(T *p, T v) {
  T old = *p;
  *p += v;
  emu::atomic(p, sizeof *p);
  return old;
}
template <class T> T atomicMax(T *p, T v) {
  T old = *p;
  if (v > old) *p = v;
  emu::atomic(p, sizeof *p);
  return old;
}
template <class T> T __ldcg(const T *p) { return *p; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) out |= (unsigned)(bytes >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return out;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

/* ---- the runtime ---- */

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaLaunchAttributeID {
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePreferredSharedMemoryCarveout = 14
};
enum { cudaSharedmemCarveoutMaxShared = 100 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrL2CacheSize,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
#define CUDART_VERSION 13000
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaDeviceScheduleSpin = 1, cudaHostAllocDefault = 0 };

namespace emu {
struct stream;
struct graph;
struct event;
} // namespace emu
typedef emu::stream *cudaStream_t;
typedef emu::graph *cudaGraph_t, *cudaGraphExec_t;
typedef emu::event *cudaEvent_t;

struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
    unsigned sharedMemCarveout;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
struct cudaDeviceProp {
  char name[256];
};

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);
cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

namespace emu {
void *library_open(const char *name); /* cuBLASLt only */
void *library_function(const char *name);
cudaError_t allow_shared(const void *kernel, int bytes);
cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, std::function<void()> body);
} // namespace emu

template <class... P> cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes) {
  return emu::allow_shared(reinterpret_cast<const void *>(kernel), bytes);
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args) {
  std::tuple<P...> copy(static_cast<P>(args)...);
  return emu::launch(config, reinterpret_cast<const void *>(kernel), [kernel, copy] { std::apply(kernel, copy); });
}

#endif
