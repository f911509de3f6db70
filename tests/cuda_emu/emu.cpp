/* Fibers, collectives, and the runtime's calls: see cuda_runtime.h. x86-64 only. */
#include "cuda_runtime.h"
#include "faults.h"

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <map>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

/* ---- fibers: a switch saves what the calling convention lets a function keep ---- */

extern "C" void emu_switch(void **save, void *load);
asm(".text\n"
    ".globl emu_switch\n"
    "emu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n");

namespace emu {
namespace {

enum { STACK = 256 << 10, MAX_THREADS = 1024, SHARED_DEFAULT = 48 << 10, SHARED_MOST = 227 << 10 };
enum state { READY, AT_COLLECTIVE, AT_BARRIER, AT_WAIT, DONE };

struct thread {
  void *sp;
  char *stack;
  void *fake_stack;
  dim3 index;
  enum state state;
  const collective *op;
  unsigned mask;
  void *arg;
  bool waited;
};

thread threads[MAX_THREADS];
thread *running;
void *scheduler_sp;
#if defined(__SANITIZE_ADDRESS__)
const void *scheduler_stack;
size_t scheduler_stack_size;
void *scheduler_fake;
#endif
const std::function<void()> *body;
unsigned char *shared;
bool dependent;
std::map<const void *, int> shared_allowed;
faults plan = {1, (size_t)1 << 40, -1};
size_t allocated;
std::map<void *, size_t> sizes;
cudaError_t sticky;

/* While watching: device memory as it was when no kernel was under way, and what kernels have written since, which a
 * dependent launch must not touch before it waits: hidden from each of its blocks until all its threads do. */
constexpr size_t GRAIN = 256;
struct region {
  unsigned char *at;
  std::vector<unsigned char> kept;
};
const bool watching = getenv("CUDA_EMU_WATCH") != nullptr;
std::map<void *, std::vector<unsigned char>> settled;
std::vector<region> unfinished;

/* The last first: what depends on an order that nothing enforces comes out otherwise. */
unsigned in_turn(unsigned i, unsigned n) { return watching ? n - 1 - i : i; }

bool quiet = true; /* nothing was under way, and no kernel has begun since */

void settle() { quiet = true; }

void find_unfinished() {
  unfinished.clear();
  if (quiet) {
    settled.clear();
    for (auto &[p, bytes] : sizes) settled[p].assign(static_cast<unsigned char *>(p), static_cast<unsigned char *>(p) + bytes);
    quiet = false;
    return;
  }
  for (auto &[p, was] : settled) {
    unsigned char *now = static_cast<unsigned char *>(p);
    for (size_t i = 0; sizes.count(p) && i < was.size(); i += GRAIN) {
      size_t n = was.size() - i < GRAIN ? was.size() - i : GRAIN;
      if (memcmp(now + i, &was[i], n)) unfinished.push_back({now + i, std::vector<unsigned char>(n)});
    }
  }
}

void hide() {
  for (region &r : unfinished) memcpy(r.kept.data(), r.at, r.kept.size()), memset(r.at, 0xff, r.kept.size());
}

void reveal() {
  for (region &r : unfinished) memcpy(r.at, r.kept.data(), r.kept.size());
}

void leave_to_scheduler(bool forever) {
  thread *t = running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(forever ? nullptr : &t->fake_stack, scheduler_stack, scheduler_stack_size);
#endif
  emu_switch(&t->sp, scheduler_sp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(t->fake_stack, nullptr, nullptr);
#endif
  (void)forever;
}

void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_size);
#endif
  (*body)();
  if (dependent && !running->waited) die("a thread of a dependent launch ended without waiting");
  running->state = DONE;
  leave_to_scheduler(true);
}

void run(thread *t) {
  running = t;
  threadIdx = t->index;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake, t->stack, STACK);
#endif
  emu_switch(&scheduler_sp, t->sp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

void start(thread *t, unsigned i) {
  if (!t->stack) {
    t->stack = static_cast<char *>(mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (t->stack == MAP_FAILED) die("no memory for a fiber");
  }
  void **top = reinterpret_cast<void **>(t->stack + STACK) - 1; /* a call leaves the stack 8 below a multiple of 16 */
  *--top = reinterpret_cast<void *>(fiber_main);
  t->sp = top - 6;
  memset(t->sp, 0, 6 * sizeof(void *));
  t->index = dim3(i, 0, 0);
  t->state = READY;
  t->waited = false;
  t->fake_stack = nullptr;
}

/* Applies the collectives of a warp that are complete; says whether there was one. */
bool resolve(unsigned first, unsigned n) {
  bool any = false;
  for (unsigned i = 0; i < n; i++) {
    thread *t = &threads[first + i];
    if (t->state != AT_COLLECTIVE) continue;
    void *arg[32] = {};
    bool all = true;
    for (unsigned j = 0; j < 32; j++) {
      if (!(t->mask >> j & 1)) continue;
      if (j >= n) die("%s: lane %u is in the mask and not in the block", t->op->name, j);
      thread *peer = &threads[first + j];
      if (peer->state == DONE || peer->state == AT_BARRIER)
        die("%s: lane %u is in the mask of lane %u but has left for %s", t->op->name, j, i,
            peer->state == DONE ? "good" : "__syncthreads");
      all &= peer->state == AT_COLLECTIVE;
      if (peer->state != AT_COLLECTIVE) continue;
      if (peer->mask != t->mask || strcmp(peer->op->name, t->op->name))
        die("lanes %u and %u diverged: %s with mask %08x, %s with mask %08x", i, j, t->op->name, t->mask, peer->op->name,
            peer->mask);
      arg[j] = peer->arg;
    }
    if (!all) continue;
    t->op->apply(arg, t->mask);
    unsigned mask = t->mask;
    for (unsigned j = 0; j < n; j++)
      if (mask >> j & 1) threads[first + j].state = READY;
    any = true;
  }
  return any;
}

void run_block(unsigned count) {
  for (unsigned i = 0; i < count; i++) start(&threads[i], i);
  for (;;) {
    for (unsigned warps = (count + 31) / 32, w = 0; w < warps; w++) {
      unsigned first = 32 * in_turn(w, warps), n = count - first < 32 ? count - first : 32;
      do
        for (unsigned i = 0; i < n; i++) {
          thread *t = &threads[first + in_turn(i, n)];
          if (t->state == READY) run(t);
        }
      while (resolve(first, n));
    }
    unsigned done = 0, waiting = 0, held = 0;
    for (unsigned i = 0; i < count; i++) {
      done += threads[i].state == DONE, waiting += threads[i].state == AT_BARRIER;
      held += threads[i].state == AT_WAIT;
    }
    if (done == count) return;
    if (held == count) reveal(), waiting = count;
    if (waiting != count) die("deadlock: of %u threads %u wait at __syncthreads and %u have ended", count, waiting, done);
    for (unsigned i = 0; i < count; i++) threads[i].state = READY;
  }
}

cudaError_t run_grid(const cudaLaunchConfig_t &config, const std::function<void()> &kernel) {
  if (sticky) return sticky;
  if (plan.launches >= 0 && plan.launches-- == 0) return sticky = cudaErrorLaunchFailure;
  dim3 grid = config.gridDim;
  body = &kernel;
  blockDim = config.blockDim;
  gridDim = grid;
  dependent = config.numAttrs > 0;
  if (watching && dependent) find_unfinished();
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = dim3(in_turn(x, grid.x), in_turn(y, grid.y), in_turn(z, grid.z));
        shared = static_cast<unsigned char *>(malloc(config.dynamicSmemBytes));
        memset(shared, 0xff, config.dynamicSmemBytes);
        if (watching && dependent) hide();
        run_block(config.blockDim.x);
        free(shared);
      }
  return cudaSuccess;
}

} // namespace

struct stream {
  graph *capturing;
};
struct graph {
  std::vector<std::function<cudaError_t()>> node;
};
struct event {
  double ms;
};

void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "cuda_emu: block (%u, %u, %u): ", blockIdx.x, blockIdx.y, blockIdx.z);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}

void arrive(const collective *c, unsigned mask, void *arg) {
  thread *t = running;
  if (!(mask >> (t->index.x & 31) & 1)) die("%s: lane %u is not in its own mask %08x", c->name, t->index.x & 31, mask);
  t->op = c, t->mask = mask, t->arg = arg, t->state = AT_COLLECTIVE;
  leave_to_scheduler(false);
}

void barrier() {
  running->state = AT_BARRIER;
  leave_to_scheduler(false);
}

void waited() {
  running->waited = true;
  if (!watching || !dependent) return;
  running->state = AT_WAIT;
  leave_to_scheduler(false);
}

unsigned char *shared_memory() { return shared; }

cudaError_t allow_shared(const void *kernel, int bytes) {
  if (bytes > SHARED_MOST) return cudaErrorInvalidValue;
  shared_allowed[kernel] = bytes;
  return cudaSuccess;
}

static cudaError_t perform(cudaStream_t s, std::function<cudaError_t()> work) {
  if (!s->capturing) return work();
  s->capturing->node.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, std::function<void()> f) {
  auto allowed = shared_allowed.find(kernel);
  size_t most = allowed == shared_allowed.end() ? (size_t)SHARED_DEFAULT : (size_t)allowed->second;
  unsigned count = config->blockDim.x;
  if (config->blockDim.y != 1 || config->blockDim.z != 1 || count < 1 || count > MAX_THREADS || config->gridDim.y > 65535 ||
      config->gridDim.z > 65535 || !config->gridDim.x || !config->gridDim.y || !config->gridDim.z ||
      (config->dynamicSmemBytes > most && config->dynamicSmemBytes > SHARED_DEFAULT))
    return cudaErrorInvalidValue;
  cudaLaunchConfig_t copy = *config;
  return perform(config->stream, [copy, f] { return run_grid(copy, f); });
}

} // namespace emu

using namespace emu;

extern "C" void emu_faults(faults f) {
  plan = f;
  sticky = cudaSuccess;
}

extern "C" size_t emu_allocated(void) { return allocated; }

cudaError_t cudaGetDeviceCount(int *n) {
  double memory;
  const char *given = getenv("CUDA_EMU_FAULTS");
  if (given && sscanf(given, "%d %lf %d", &plan.devices, &memory, &plan.launches) == 3) plan.memory = (size_t)memory;
  *n = plan.devices > 0 ? plan.devices : 0;
  if (plan.devices > 0) return cudaSuccess;
  return plan.devices < 0 ? cudaErrorInsufficientDriver : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int) { return sticky; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
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
  default: return "invalid argument";
  }
}
cudaError_t cudaGetLastError() { return sticky; }
cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  *left = plan.memory - allocated, *total = plan.memory;
  return sticky;
}

static cudaError_t take(void **p, size_t bytes, size_t counted) {
  if (sticky) return sticky;
  if (counted > plan.memory - allocated) return cudaErrorMemoryAllocation;
  *p = malloc(bytes);
  memset(*p, 0xff, bytes);
  allocated += counted;
  sizes[*p] = counted;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **p, size_t bytes) { return take(p, bytes, bytes); }
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) { return take(p, bytes, 0); }
cudaError_t cudaFree(void *p) {
  if (!p) return cudaSuccess;
  allocated -= sizes.at(p);
  sizes.erase(p);
  free(p);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s) {
  return perform(s, [=] { return memmove(to, from, bytes), settle(), sticky; });
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind, cudaStream_t s) {
  return perform(s, [=] {
    for (size_t i = 0; i < height; i++)
      memmove(static_cast<char *>(to) + i * to_pitch, static_cast<const char *>(from) + i * from_pitch, width);
    return settle(), sticky;
  });
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s) {
  return perform(s, [=] { return memset(p, value, bytes), settle(), sticky; });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return *s = new stream{nullptr}, sticky; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return delete s, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return settle(), sticky; }
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) { return s->capturing = new graph, sticky; }
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
  *g = s->capturing;
  s->capturing = nullptr;
  return sticky;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long) {
  return *exec = new graph(*g), sticky;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  settle();
  for (auto &node : exec->node) {
    cudaError_t e = node();
    if (e) return e;
  }
  return sticky;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return delete g, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }
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
