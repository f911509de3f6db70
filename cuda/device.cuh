/* The instructions of the device that the kernels use, each with its twin for the emulation (tests/cuda_emu). Only this
 * file knows for which of the two it is compiled. 16-bit numbers are kept as their bits; TYPE is their type.
 *
 * No sum may depend on how the compiler contracts a * b + c: the sources are compiled with -fmad=false, and fmaf is
 * written where a single rounding is needed. */
#ifndef DT_CUDA_DEVICE_CUH
#define DT_CUDA_DEVICE_CUH

#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>

constexpr int WARP = 32;
enum number { F16, BF16 };

uint16_t narrow_once(double x);

#if defined(CUDA_EMU)

inline void *library_open(const char *name) { return emu::library_open(name); }
inline void *library_function(void *, const char *name) { return emu::library_function(name); }
inline void library_close(void *) {}

#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emu::shared_memory())
#define DYNAMIC_SHARED_OF(type, name, bytes) type *name = reinterpret_cast<type *>(emu::shared_memory(bytes))

template <number TYPE> inline float widen(uint16_t bits) {
  if (TYPE == BF16) return __uint_as_float((unsigned)bits << 16);
  unsigned sign = (unsigned)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude < 0x400) return __uint_as_float(sign | __float_as_uint((float)magnitude * 0x1p-24f));
  return __uint_as_float(sign | ((magnitude << 13) + (magnitude < 0x7c00 ? 112u << 23 : 224u << 23)));
}

/* Rounds to the nearest, ties to even. */
template <number TYPE> inline uint16_t narrow(float x) {
  unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (TYPE == BF16) return (uint16_t)(sign | (magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16);
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) return (uint16_t)(sign | (unsigned)nearbyintf(__uint_as_float(magnitude) * 0x1p24f));
  return (uint16_t)(sign | (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

/* The sum is exact before it is rounded if a is a small whole number, as in record.cuh. */
inline unsigned fma2(unsigned a, unsigned b, unsigned c) {
  unsigned both = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    double product = (double)widen<F16>((uint16_t)(a >> shift)) * widen<F16>((uint16_t)(b >> shift));
    both |= (unsigned)narrow_once(product + widen<F16>((uint16_t)(c >> shift))) << shift;
  }
  return both;
}

inline unsigned add2(unsigned a, unsigned b) { return fma2(a, 0x3c003c00, b); }
inline unsigned masked_or(unsigned x, unsigned mask, unsigned bits) { return (x & mask) | bits; }
inline unsigned low_twice(unsigned x) { return x << 16 | (x & 0xffff); }
inline unsigned high_twice(unsigned x) { return x >> 16 | (x & 0xffff0000); }

inline uint4 load_stream(const uint4 *p) { return *p; }
inline void copy_stream(uint4 *to, const uint4 *from) { emu::copy_begin(to, from, sizeof *to); }
inline void copy_stream_if(bool wanted, uint4 *to, const uint4 *from) {
  if (wanted) copy_stream(to, from);
}
inline void copy_cached_if(bool wanted, uint4 *to, const uint4 *from) { copy_stream_if(wanted, to, from); }
inline void copy_stream(uint2 *to, const uint2 *from) { emu::copy_begin(to, from, sizeof *to); }
inline void copies_commit() { emu::copies_commit(); }
template <int LEFT> inline void copies_wait() { emu::copies_wait(LEFT); }
inline void dependency_wait() { emu::waited(); }
inline void dependency_release() {}
inline unsigned add_one_for_block(unsigned *p) {
  __threadfence();
  return atomicAdd(p, 1u);
}

/* d[16][8] += a[16][16] b[16][8]; the fragments are laid out as in the instruction below. */
struct mma_argument {
  float *d;
  const unsigned *a, *b;
};
template <number TYPE> inline void apply_mma(void *const arg[32], unsigned) {
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; lane++) {
    const mma_argument *m = static_cast<const mma_argument *>(arg[lane]);
    int g = lane / 4, t = lane % 4;
    for (int half = 0; half < 2; half++) {
      for (int i = 0; i < 4; i++)
        a[g + i % 2 * 8][2 * t + i / 2 * 8 + half] = widen<TYPE>((uint16_t)(m->a[i] >> (16 * half)));
      for (int i = 0; i < 2; i++) b[2 * t + i * 8 + half][g] = widen<TYPE>((uint16_t)(m->b[i] >> (16 * half)));
    }
  }
  for (int lane = 0; lane < 32; lane++) {
    const mma_argument *m = static_cast<const mma_argument *>(arg[lane]);
    for (int i = 0; i < 4; i++)
      for (int k = 0; k < 16; k++) m->d[i] += a[lane / 4 + i / 2 * 8][k] * b[k][lane % 4 * 2 + i % 2];
  }
}
template <number TYPE> inline void mma(float *d, const unsigned *a, const unsigned *b) {
  static const emu::collective c = {TYPE == F16 ? "mma f16" : "mma bf16", apply_mma<TYPE>};
  mma_argument m = {d, a, b};
  emu::arrive(&c, 0xffffffffu, &m);
}

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <dlfcn.h>

/* A library of the toolkit and its functions; null: it is not installed. */
inline void *library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
inline void *library_function(void *library, const char *name) { return dlsym(library, name); }
inline void library_close(void *library) {
  if (library) dlclose(library);
}

#define DYNAMIC_SHARED(type, name)                                                                                     \
  extern __shared__ __align__(16) unsigned char dynamic_shared_[];                                                     \
  type *name = reinterpret_cast<type *>(dynamic_shared_)

/* Shared memory of a constant size. The PTX names a register after the size, so that tests/sass can read it: the
 * machine code does not have it. */
#define DYNAMIC_SHARED_OF(type, name, bytes)                                                                           \
  DYNAMIC_SHARED(type, name);                                                                                          \
  asm volatile("{ .reg .b32 dynamic_shared_%0; }" ::"n"(bytes))

template <number TYPE> __host__ __device__ __forceinline__ float widen(uint16_t bits) {
  if constexpr (TYPE == BF16)
    return __bfloat162float(__ushort_as_bfloat16(bits));
  else
    return __half2float(__ushort_as_half(bits));
}

template <number TYPE> __host__ __device__ __forceinline__ uint16_t narrow(float x) {
  if constexpr (TYPE == BF16)
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  else
    return __half_as_ushort(__float2half_rn(x));
}

/* a * b + c of two numbers in F16 each, rounded once. */
__device__ __forceinline__ unsigned fma2(unsigned a, unsigned b, unsigned c) {
  unsigned both;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
  return both;
}

__device__ __forceinline__ unsigned add2(unsigned a, unsigned b) {
  unsigned both;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}

/* (x & mask) | bits, in one instruction: the compiler makes two if both are constants. */
__device__ __forceinline__ unsigned masked_or(unsigned x, unsigned mask, unsigned bits) {
  unsigned y;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "r"(mask), "r"(bits));
  return y;
}

/* One half of a register in both. An operand of fma2 can be read so, at no cost. */
__device__ __forceinline__ unsigned low_twice(unsigned x) {
  unsigned y;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {low, low}; }" : "=r"(y) : "r"(x));
  return y;
}
__device__ __forceinline__ unsigned high_twice(unsigned x) {
  unsigned y;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, high}; }" : "=r"(y) : "r"(x));
  return y;
}

/* Loads weights, which are read once, past the L1 cache, which is kept for activations. */
__device__ __forceinline__ uint4 load_stream(const uint4 *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

/* Copies 16 bytes to shared memory while the thread goes on: past the L1 cache or, for data that other blocks of the
 * multiprocessor read too, through it, as 8 bytes always go. The copies begun since the last commit form a group.
 * copies_wait<LEFT> waits until at most LEFT groups are under way. Then the thread itself sees its copies; other
 * threads see them after a barrier. The copies with a condition are predicated: several of them need no branch. */
__device__ __forceinline__ void copy_stream(uint4 *to, const uint4 *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void copy_stream_if(bool wanted, uint4 *to, const uint4 *from) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.cg.shared.global [%1], [%2], 16; }" ::"r"((int)wanted),
      "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
      : "memory");
}
__device__ __forceinline__ void copy_cached_if(bool wanted, uint4 *to, const uint4 *from) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.ca.shared.global [%1], [%2], 16; }" ::"r"((int)wanted),
      "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
      : "memory");
}
__device__ __forceinline__ void copy_stream(uint2 *to, const uint2 *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Programmatic dependent launch: a kernel may begin while the kernel before it still runs, as soon as all blocks of
 * that one have begun and called dependency_release(), which they do at once. So multiprocessors that are free at the
 * end of a kernel already request the weights of the next one. Every thread of every kernel calls dependency_wait()
 * before it writes anything, or reads data that a kernel of its pass writes. Before that call it may read weights and
 * the pass's rows, which were copied before the pass's first kernel; the latency of these loads then overlaps with the
 * wait. After the wait the kernel before it has ended and so, since that one waited too, have all earlier kernels;
 * their writes are visible. */
__device__ __forceinline__ void dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void dependency_release() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Adds one and returns the value before. Blocks that add later see all that this thread's block wrote before its last
 * barrier. This block's threads see the writes of blocks that added earlier after their next barrier. */
__device__ __forceinline__ unsigned add_one_for_block(unsigned *p) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(p) : "memory");
  return before;
}

/* d[16][8] += a[16][16] b[16][8] by one warp. Lane 4 g + t holds, two k in a register, a[g][2t..], a[g+8][2t..],
 * a[g][2t+8..], a[g+8][2t+8..]; b[2t..][g], b[2t+8..][g]; and d[g][2t], d[g][2t+1], d[g+8][2t], d[g+8][2t+1]. */
template <number TYPE> __device__ __forceinline__ void mma(float *d, const unsigned *a, const unsigned *b) {
  if constexpr (TYPE == BF16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

/* On the host: the nearest number in F16, ties to even. An f32 between two of F16 gets an odd last bit, so that
 * rounding it again gives what rounding x once does. */
inline uint16_t narrow_once(double x) {
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((double)f != x) bits = (fabs((double)f) > fabs(x) ? bits - 1 : bits) | 1;
  memcpy(&f, &bits, sizeof f);
  return narrow<F16>(f);
}

/* Two numbers in a register, the first in the low half. */
template <number TYPE> __device__ __forceinline__ unsigned narrow2(float low, float high) {
  return (unsigned)narrow<TYPE>(low) | (unsigned)narrow<TYPE>(high) << 16;
}

/* The sum over the lanes of a warp, the same in every lane. */
__device__ __forceinline__ float warp_sum(float x) {
  for (int bits = WARP / 2; bits; bits /= 2) x += __shfl_xor_sync(0xffffffffu, x, bits);
  return x;
}
/* The sum over all threads of a block with this number of warps, the same in every thread; `shared` has room for a
 * number of each warp. */
template <int WARPS> __device__ __forceinline__ float block_sum(float x, float *shared) {
  x = warp_sum(x);
  __syncthreads(); /* other threads may still read the sums before */
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = x;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < WARPS; i++) sum += shared[i];
  return sum;
}
__device__ __forceinline__ float warp_max(float x) {
  for (int bits = WARP / 2; bits; bits /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, bits));
  return x;
}

#endif
