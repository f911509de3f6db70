/* The calls of the runtime: see cuda_runtime.h. */
#include "emu.h"
#include "faults.h"

#include <cstdio>
#include <ctime>
#include <map>
#include <set>

namespace emu {
namespace {

enum { MAX_THREADS = 1024, SHARED_DEFAULT = 48 << 10 };

/* Shared memory per block: as on an H100 or, with CUDA_EMU_SMALL in the environment, as on most devices. */
const int shared_most = getenv("CUDA_EMU_SMALL") ? 99 << 10 : 227 << 10;

enum { MOST_DEVICES = 8 };
thread_local int device; /* the current one: kernels run on its streams, memory is taken from it */
std::map<const void *, int> shared_allowed[MOST_DEVICES];
std::set<const void *> loaded; /* kernels that ran since the last emu_faults() */
faults plan = {1, (size_t)1 << 40, -1, 0};
int used;
size_t allocated[MOST_DEVICES];
struct taken {
  size_t bytes;
  int device;
};
std::map<void *, taken> sizes;
cudaError_t sticky;

bool lacks(int feature) {
  used |= feature;
  return plan.lacks & feature;
}

cudaError_t run_grid(const cudaLaunchConfig_t &config, bool dependent, const std::function<void()> &kernel) {
  if (sticky) return sticky;
  if (plan.launches >= 0 && plan.launches-- == 0) return sticky = cudaErrorLaunchFailure;
  run_blocks(config, dependent, kernel);
  return cudaSuccess;
}

} // namespace

bool library_begins() { return !lacks(EMU_CUBLASLT_BEGINS); }

struct stream {
  graph *capturing;
  int device;
};
struct graph {
  std::vector<std::function<cudaError_t()>> node;
  size_t bytes; /* of the device's memory */
  int device;
};
struct event {
  double ms;
};

cudaError_t allow_shared(const void *kernel, int bytes) {
  if (bytes > shared_most) return cudaErrorInvalidValue;
  shared_allowed[device][kernel] = bytes;
  return cudaSuccess;
}

static cudaError_t perform(cudaStream_t s, std::function<cudaError_t()> work) {
  if (!s->capturing) return work();
  s->capturing->node.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, std::function<void()> f) {
  auto allowed = shared_allowed[device].find(kernel);
  size_t most = allowed == shared_allowed[device].end() ? (size_t)SHARED_DEFAULT : (size_t)allowed->second;
  unsigned count = config->blockDim.x;
  if (config->blockDim.y != 1 || config->blockDim.z != 1 || count < 1 || count > MAX_THREADS ||
      config->gridDim.y > 65535 || config->gridDim.z > 65535 || !config->gridDim.x || !config->gridDim.y ||
      !config->gridDim.z || config->stream->device != device ||
      (config->dynamicSmemBytes > most && config->dynamicSmemBytes > SHARED_DEFAULT))
    return cudaErrorInvalidValue;
  bool dependent = false;
  for (unsigned i = 0; i < config->numAttrs; i++)
    dependent |= config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization;
  if (dependent && lacks(EMU_DEPENDENT)) return cudaErrorNotSupported;
  if (config->stream->capturing && !loaded.count(kernel) && lacks(EMU_FIRST_IN_GRAPH)) return cudaErrorNotSupported;
  loaded.insert(kernel);
  cudaLaunchConfig_t copy = *config;
  return perform(config->stream, [copy, dependent, f] { return run_grid(copy, dependent, f); });
}

} // namespace emu

using namespace emu;

void *emu::library_open(const char *) {
  static char library;
  return lacks(EMU_CUBLASLT) ? nullptr : &library;
}

extern "C" void emu_faults(faults f) {
  plan = f;
  used = 0;
  sticky = cudaSuccess;
  loaded.clear();
}

extern "C" size_t emu_allocated(void) {
  size_t all = 0;
  for (size_t of : allocated) all += of;
  return all;
}
extern "C" int emu_used(void) { return used; }

cudaError_t cudaGetDeviceCount(int *n) {
  double memory;
  const char *given = getenv("CUDA_EMU_FAULTS");
  if (given && sscanf(given, "%d %lf %d", &plan.devices, &memory, &plan.launches) == 3) plan.memory = (size_t)memory;
  *n = plan.devices > 0 ? plan.devices : 0;
  if (plan.devices > 0) return cudaSuccess;
  return plan.devices < 0 ? cudaErrorInsufficientDriver : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int *version) { return *version = plan.devices == -2 ? 0 : 12040, cudaSuccess; }
cudaError_t cudaSetDevice(int index) {
  if (index < 0 || index >= plan.devices || index >= MOST_DEVICES) return cudaErrorInvalidValue;
  return device = index, sticky;
}
cudaError_t cudaGetDevice(int *index) { return *index = device, cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
  strcpy(p->name, "emulated");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount: *value = 4; break;
  case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
  case cudaDevAttrL2CacheSize: *value = 1 << 16; break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = shared_most; break;
  }
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t e) {
  switch (e) {
  case cudaSuccess: return "no error";
  case cudaErrorMemoryAllocation: return "out of memory";
  case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
  case cudaErrorNoDevice: return "no CUDA-capable device is detected";
  case cudaErrorLaunchFailure: return "unspecified launch failure";
  case cudaErrorNotSupported: return "operation not supported";
  default: return "invalid argument";
  }
}
cudaError_t cudaGetLastError() { return sticky; }
cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  *left = plan.memory - allocated[device], *total = plan.memory;
  return sticky;
}

static cudaError_t take(void **p, size_t bytes, size_t counted) {
  if (sticky) return sticky;
  if (counted > plan.memory - allocated[device]) return cudaErrorMemoryAllocation;
  *p = watching ? watched_memory(bytes) : malloc(bytes);
  memset(*p, 0xff, bytes);
  allocated[device] += counted;
  sizes[*p] = {counted, device};
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **p, size_t bytes) { return take(p, bytes, bytes); }
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) { return take(p, bytes, 0); }
cudaError_t cudaFree(void *p) {
  if (!p) return cudaSuccess;
  allocated[sizes.at(p).device] -= sizes.at(p).bytes;
  sizes.erase(p);
  watching ? free_watched(p) : free(p);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s) {
  return perform(s, [=] { return memmove(to, from, bytes), watch_settle(), sticky; });
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t s) {
  return perform(s, [=] {
    for (size_t i = 0; i < height; i++)
      memmove(static_cast<char *>(to) + i * to_pitch, static_cast<const char *>(from) + i * from_pitch, width);
    return watch_settle(), sticky;
  });
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s) {
  return perform(s, [=] { return memset(p, value, bytes), watch_settle(), sticky; });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return *s = new stream{nullptr, device}, sticky; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return delete s, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return watch_settle(), sticky; }
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  if (lacks(EMU_GRAPHS)) return cudaErrorNotSupported;
  return s->capturing = new graph, sticky;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
  *g = s->capturing;
  s->capturing = nullptr;
  return sticky;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long) {
  const size_t bytes = plan.lacks & EMU_LARGE_GRAPHS ? EMU_GRAPH : 0;
  if (bytes > plan.memory - allocated[device]) return cudaErrorMemoryAllocation;
  allocated[device] += bytes;
  *exec = new graph(*g);
  (*exec)->bytes = bytes, (*exec)->device = device;
  return sticky;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  if (s->device != exec->device || s->device != device) return cudaErrorInvalidValue;
  watch_settle();
  for (auto &node : exec->node) {
    cudaError_t e = node();
    if (e) return e;
  }
  return sticky;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return delete g, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  allocated[exec->device] -= exec->bytes;
  return delete exec, cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return *e = new event{0}, sticky; }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  e->ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
  return sticky;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return sticky; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  return *ms = (float)(to->ms - from->ms), sticky;
}
