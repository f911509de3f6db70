/* Emulates threads as fibers, the blocks of a grid, and the collective operations of a block's threads. x86-64 only. */
#include "emu.h"

#include <cstdarg>
#include <cstdio>
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

enum { STACK = 256 << 10, RESIDENT = 4096 }; /* RESIDENT: threads of blocks that interleave */
enum state { READY, AT_COLLECTIVE, AT_BARRIER, AT_WAIT, DONE };

struct copy {
  void *to;
  unsigned char bytes[16];
  size_t length;
  int group;
};

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
  std::vector<copy> copies; /* copies that have begun */
  int groups;               /* committed groups of copies */
};

struct block {
  dim3 index;
  std::vector<thread> threads;
  unsigned char *shared;
  size_t shared_bytes;
  bool last_first; /* the order of its warps, and of their lanes */
  bool held, done;
  std::vector<byte_written> own;
};

std::vector<block> resident;
block *current;
thread *running;
bool gave_way;
void *scheduler_sp;
#if defined(__SANITIZE_ADDRESS__)
const void *scheduler_stack;
size_t scheduler_stack_size;
void *scheduler_fake;
#endif
const std::function<void()> *body;
bool dependent;

unsigned in_turn(unsigned i, unsigned n, bool last_first) { return last_first ? n - 1 - i : i; }

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
  if (!running->copies.empty()) die("a thread ended before its copies to shared memory were complete");
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

char *stack_of(unsigned fiber) {
  static char *stacks[RESIDENT];
  char **stack = &stacks[fiber];
  if (!*stack)
    *stack = static_cast<char *>(mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (*stack == MAP_FAILED) die("out of memory for a fiber");
  return *stack;
}

void start(thread *t, unsigned i, char *stack) {
  t->stack = stack;
  void **top = reinterpret_cast<void **>(t->stack + STACK) - 1; /* a call leaves the stack 8 below a multiple of 16 */
  *--top = reinterpret_cast<void *>(fiber_main);
  t->sp = top - 6;
  memset(t->sp, 0, 6 * sizeof(void *));
  t->index = dim3(i, 0, 0);
  t->state = READY;
  t->waited = false;
  t->copies.clear();
  t->groups = 0;
  t->fake_stack = nullptr;
}

/* Applies the collectives of a warp that are complete. Returns whether there was one. */
bool resolve(thread *warp, unsigned n) {
  bool any = false;
  for (unsigned i = 0; i < n; i++) {
    thread *t = &warp[i];
    if (t->state != AT_COLLECTIVE) continue;
    void *arg[32] = {};
    bool all = true;
    for (unsigned j = 0; j < 32; j++) {
      if (!(t->mask >> j & 1)) continue;
      if (j >= n) die("%s: lane %u is in the mask but not in the block", t->op->name, j);
      thread *peer = &warp[j];
      if (peer->state == DONE || peer->state == AT_BARRIER)
        die("%s: lane %u is in the mask of lane %u but has left for %s", t->op->name, j, i,
            peer->state == DONE ? "good" : "__syncthreads");
      all &= peer->state == AT_COLLECTIVE;
      if (peer->state != AT_COLLECTIVE) continue;
      if (peer->mask != t->mask || strcmp(peer->op->name, t->op->name))
        die("lanes %u and %u diverged: %s with mask %08x, %s with mask %08x", i, j, t->op->name, t->mask,
            peer->op->name, peer->mask);
      arg[j] = peer->arg;
    }
    if (!all) continue;
    t->op->apply(arg, t->mask);
    unsigned mask = t->mask;
    for (unsigned j = 0; j < n; j++)
      if (mask >> j & 1) warp[j].state = READY;
    any = true;
  }
  return any;
}

/* Runs the block's threads until all have ended, all are about to read what other kernels write, or one of them lets
 * other blocks run. */
void turn(block *b) {
  unsigned count = (unsigned)b->threads.size();
  current = b, blockIdx = b->index, gave_way = false;
  for (;;) {
    for (unsigned warps = (count + 31) / 32, w = 0; w < warps; w++) {
      unsigned first = 32 * in_turn(w, warps, b->last_first), n = count - first < 32 ? count - first : 32;
      do
        for (unsigned i = 0; i < n; i++) {
          thread *t = &b->threads[first + in_turn(i, n, b->last_first)];
          if (t->state == READY) run(t);
          if (gave_way) return;
        }
      while (resolve(&b->threads[first], n));
    }
    unsigned done = 0, waiting = 0, held = 0;
    for (const thread &t : b->threads)
      done += t.state == DONE, waiting += t.state == AT_BARRIER, held += t.state == AT_WAIT;
    b->done = done == count, b->held = held == count;
    if (b->done) return;
    if (!b->held && waiting != count)
      die("deadlock: of %u threads %u wait at __syncthreads and %u have ended", count, waiting, done);
    for (thread &t : b->threads) t.state = READY;
    if (b->held) return;
  }
}

/* Runs blocks that are resident at the same time: one after the other, or taking turns. */
void run_together(unsigned count) {
  if (watching && dependent) {
    watch_hide();
    for (unsigned i = 0; i < count; i++) do
        turn(&resident[i]);
      while (!resident[i].held);
    watch_reveal();
  }
  for (unsigned left = count; left;)
    for (unsigned i = 0; i < count; i++) {
      block *b = &resident[i];
      if (b->done) continue;
      if (watching) watch_enter(b->own);
      turn(b);
      if (watching) watch_leave(&b->own);
      left -= b->done;
    }
}

void begin(unsigned place, unsigned index, const cudaLaunchConfig_t &config) {
  dim3 grid = config.gridDim;
  block *b = &resident[place];
  b->index = dim3(index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y);
  b->threads.resize(config.blockDim.x);
  for (unsigned i = 0; i < config.blockDim.x; i++) start(&b->threads[i], i, stack_of(place * config.blockDim.x + i));
  b->shared = static_cast<unsigned char *>(malloc(config.dynamicSmemBytes));
  memset(b->shared, 0xff, config.dynamicSmemBytes);
  b->shared_bytes = config.dynamicSmemBytes;
  b->last_first = watching && index % 2;
  b->held = b->done = false;
}

} // namespace

void run_blocks(const cudaLaunchConfig_t &config, bool is_dependent, const std::function<void()> &kernel) {
  body = &kernel, blockDim = config.blockDim, gridDim = config.gridDim;
  dependent = is_dependent;
  unsigned blocks = gridDim.x * gridDim.y * gridDim.z, most = watching ? RESIDENT / blockDim.x : 1;
  if (resident.size() < most) resident.resize(most);
  std::vector<byte_written> kept;
  if (watching) watch_begin();
  for (unsigned first = 0; first < blocks; first += most) {
    unsigned count = blocks - first < most ? blocks - first : most;
    for (unsigned i = 0; i < count; i++) begin(i, in_turn(first + i, blocks, watching), config);
    run_together(count);
    for (unsigned i = 0; i < count; i++) {
      free(resident[i].shared);
      kept.insert(kept.end(), resident[i].own.begin(), resident[i].own.end());
      resident[i].own.clear();
    }
  }
  if (!watching) return;
  watch_enter(kept);
  watch_end();
}

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

static void give_way() {
  gave_way = true;
  leave_to_scheduler(false);
}

void fence() {
  if (!watching) return;
  watch_publish();
  give_way();
}

void atomic(const void *p, size_t bytes) {
  if (watching && watch_publish(p, bytes)) give_way();
}

unsigned char *shared_memory() { return current->shared; }

unsigned char *shared_memory(int bytes) {
  if ((size_t)bytes != current->shared_bytes)
    die("the kernel has %d bytes of shared memory, the launch gave %zu", bytes, current->shared_bytes);
  return current->shared;
}

void copy_begin(void *to, const void *from, size_t bytes) {
  copy c = {to, {}, bytes, running->groups};
  memcpy(c.bytes, from, bytes);
  memset(to, 0xff, bytes);
  running->copies.push_back(c);
}

void copies_commit() { running->groups++; }

void copies_wait(int left) {
  std::vector<copy> later;
  for (const copy &c : running->copies) {
    if (c.group < running->groups - left)
      memcpy(c.to, c.bytes, c.length);
    else
      later.push_back(c);
  }
  running->copies.swap(later);
}

} // namespace emu
