/* Does wgmma give the same bits as mma.sync?  wgmma [BLOCKS (2048)]
 *
 * The products of a pass (cuda/matmul.cu) use mma.sync m16n8k16. Hopper's wgmma m64nNk16 with A in registers has the
 * same fragments. It could be used for 65 rows and more if each sum over k has the same bits, since a row's bits must
 * not depend on the number of rows. This program sums the same numbers with both instructions over 64 steps of 16, and
 * compares the sums after every step. It prints a line for each type, N and kind of numbers (CSV), and then "same" or
 * "DIFFERENT". Exit status 0: the question is answered; 77: the device has no wgmma.
 *
 * First the comparison itself is tested: it must find a single flipped bit. On the emulated device both instructions
 * use the same arithmetic. */
#include "launch.cuh"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 64, GROUP_THREADS = 128, CORE = 64 /* CORE: numbers of a core matrix, 8 rows of 8 */ };

enum { PLAIN, WIDE, CANCELLING, SUBNORMAL, SUNK, SPARSE, TIES, KINDS };
static const char *const kind_names[KINDS] = {"random",      "2^-14 to 2^13", "cancelling", "subnormal",
                                              "large first", "mostly zero",   "near ties"};

/* ---- the numbers ------------------------------------------------------------------------------------------------- */

__host__ __device__ static unsigned mix(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/* A number of the type with this sign, power of two and fraction (of 10 bits, 7 of which BF16 uses). */
template <number TYPE> __host__ __device__ static uint16_t number_of(unsigned sign, int power, unsigned fraction) {
  if (TYPE == BF16) return (uint16_t)(sign << 15 | (unsigned)(power + 127) << 7 | (fraction & 0x3ff) >> 3);
  if (power < -14) return (uint16_t)(sign << 15 | (fraction & 0x3ff) >> (-15 - power)); /* subnormal */
  return (uint16_t)(sign << 15 | (unsigned)(power + 15) << 10 | (fraction & 0x3ff));
}

/* Number k of row `row` of A or B (side 0, 1). */
template <number TYPE>
__host__ __device__ static uint16_t number_at(int kind, unsigned seed, int side, int row, int k) {
  unsigned bits = mix(seed * 4u + (unsigned)side + mix((unsigned)(row << 16 | k)));
  unsigned sign = bits >> 31, fraction = bits & 0x3ff, some = bits >> 10 & 0xffff;
  switch (kind) {
  case WIDE: return number_of<TYPE>(sign, (int)(some % 28) - 14, fraction);
  case CANCELLING: { /* in each pair of k the second product is minus the first one, except for its last bits */
    unsigned pair = mix(seed * 4u + (unsigned)side + mix((unsigned)(row << 16 | k / 2)));
    unsigned last = side == 1 && k % 2 ? bits & 1 : 0;
    return number_of<TYPE>((pair >> 31) ^ (unsigned)(side == 0 ? k % 2 : 0), (int)(pair >> 10 & 0xffff) % 8 - 4,
                           (pair & 0x3ff) ^ last);
  }
  case SUBNORMAL: return number_of<TYPE>(sign, side == 0 ? -16 - (int)(some % 4) : (int)(some % 16), fraction);
  case SUNK: return number_of<TYPE>(sign, k < 2 ? 12 : -6 - (int)(some % 8), fraction);
  case SPARSE: return some % 8 ? (uint16_t)(sign << 15) : number_of<TYPE>(sign, (int)(some % 13) - 6, fraction);
  case TIES: return number_of<TYPE>(sign, k % 16 ? -6 - (int)(some % 7) : 0, k % 16 ? 0 : fraction);
  default: return number_of<TYPE>(sign, (int)(some % 4) - 4, fraction);
  }
}

template <number TYPE> __host__ __device__ static unsigned two_at(int kind, unsigned seed, int side, int row, int k) {
  return number_at<TYPE>(kind, seed, side, row, k) | (unsigned)number_at<TYPE>(kind, seed, side, row, k + 1) << 16;
}

/* ---- the instruction --------------------------------------------------------------------------------------------- */

#if defined(CUDA_EMU)

inline void warpgroup_begin() { __syncthreads(); }
inline void warpgroup_end() { __syncthreads(); }

/* b: core matrices of 8 rows by 8 k, two next to each other for each 8 rows. */
template <number TYPE, int N> inline void wgmma(float *d, const unsigned *a, const uint16_t *b) {
  int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  for (int j = 0; j < N / 8; j++) {
    unsigned two[2];
    for (int h = 0; h < 2; h++) memcpy(&two[h], b + (2 * j + h) * CORE + g * 8 + 2 * t, sizeof two[h]);
    mma<TYPE>(d + 4 * j, a, two);
  }
}

#elif defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)

/* Makes what the threads wrote to shared memory visible to the instruction. */
__device__ static void warpgroup_begin() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}
__device__ static void warpgroup_end() { __syncthreads(); }

/* Describes the layout of B: rows of 16 bytes, 8 of them together; the next 8 k are 128 bytes further, the next 8 rows
 * 256 bytes; not swizzled. */
__device__ static uint64_t descriptor_of(const uint16_t *b) {
  uint64_t at = (uint64_t)__cvta_generic_to_shared(b);
  return (at & 0x3ffff) >> 4 | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
/* The instruction and the wait for it are a single statement, so that nothing reads its sums in between. */
#define WGMMA(n, type, sums, ra, desc, one, ...)                                                                       \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " one ", 0;\n"                                                          \
               "wgmma.fence.sync.aligned;\n"                                                                           \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" sums "}, {" ra "}, " desc          \
               ", p, 1, 1, 0;\n"                                                                                       \
               "wgmma.commit_group.sync.aligned;\n"                                                                    \
               "wgmma.wait_group.sync.aligned 0; }"                                                                    \
               : __VA_ARGS__                                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor_of(b)), "r"(1)                             \
               : "memory")

#define SUMS_8 "%0, %1, %2, %3"
#define SUMS_64                                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "     \
  "%24, %25, %26, %27, %28, %29, %30, %31"

template <number TYPE, int N> __device__ static void wgmma(float *d, const unsigned *a, const uint16_t *b) {
  static_assert(N == 8 || N == 64, "the two that are compared");
  if constexpr (TYPE == F16 && N == 8) WGMMA(8, "f16", SUMS_8, "%4, %5, %6, %7", "%8", "%9", D4(0));
  if constexpr (TYPE == BF16 && N == 8) WGMMA(8, "bf16", SUMS_8, "%4, %5, %6, %7", "%8", "%9", D4(0));
  if constexpr (TYPE == F16 && N == 64) WGMMA(64, "f16", SUMS_64, "%32, %33, %34, %35", "%36", "%37", D16(0), D16(16));
  if constexpr (TYPE == BF16 && N == 64)
    WGMMA(64, "bf16", SUMS_64, "%32, %33, %34, %35", "%36", "%37", D16(0), D16(16));
}

#else /* compiled for a device without it, and not run there */

__device__ static void warpgroup_begin() {}
__device__ static void warpgroup_end() {}
template <number TYPE, int N> __device__ static void wgmma(float *, const unsigned *, const uint16_t *) {}

#endif

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

struct found {
  unsigned long long sums, different;
  unsigned step;
  float wgmma, mma; /* two sums that differ */
};

/* Computes both sums of a block's own numbers and compares them after every step. With `control` wgmma's sums are
 * replaced by mma.sync's with one flipped bit. */
template <number TYPE, int N> static __global__ void k_compare(int kind, unsigned seed, bool control, found *to) {
  DYNAMIC_SHARED(uint16_t, b);
  dependency_release();
  dependency_wait();
  int thread = (int)threadIdx.x, lane = thread % 32, g = lane / 4, t = lane % 4, row = thread / 32 * 16 + g;
  unsigned own = mix(seed + blockIdx.x);
  float by_wgmma[N / 2], by_mma[N / 2];
  for (int i = 0; i < N / 2; i++) by_wgmma[i] = by_mma[i] = 0.0f;
  for (int step = 0; step < STEPS; step++) {
    int k = step * 16;
    for (int i = thread; i < N * 16; i += GROUP_THREADS) {
      int n = i / 16, at = i % 16;
      b[(n / 8 * 2 + at / 8) * CORE + n % 8 * 8 + at % 8] = number_at<TYPE>(kind, own, 1, n, k + at);
    }
    unsigned a[4];
    for (int i = 0; i < 4; i++) a[i] = two_at<TYPE>(kind, own, 0, row + i % 2 * 8, k + 2 * t + i / 2 * 8);
    warpgroup_begin();
    wgmma<TYPE, N>(by_wgmma, a, b);
    warpgroup_end();
    for (int j = 0; j < N / 8; j++) {
      unsigned two[2];
      for (int h = 0; h < 2; h++) two[h] = two_at<TYPE>(kind, own, 1, 8 * j + g, k + 2 * t + h * 8);
      mma<TYPE>(by_mma + 4 * j, a, two);
    }
    for (int i = 0; i < N / 2 && control; i++) by_wgmma[i] = by_mma[i];
    if (control && step == STEPS - 1 && blockIdx.x == 0 && thread == 77)
      by_wgmma[1] = __uint_as_float(__float_as_uint(by_wgmma[1]) ^ 1u);
    unsigned long long different = 0;
    for (int i = 0; i < N / 2; i++) {
      if (__float_as_uint(by_wgmma[i]) == __float_as_uint(by_mma[i])) continue;
      different++;
      to->step = (unsigned)step, to->wgmma = by_wgmma[i], to->mma = by_mma[i];
    }
    if (different) atomicAdd(&to->different, different);
    if (thread == 0) atomicAdd(&to->sums, (unsigned long long)N * 64);
  }
}

struct device {
  queue stream;
  found *on_device, here;
};

static void must(cudaError_t e) {
  if (e == cudaSuccess) return;
  fprintf(stderr, "wgmma: %s\n", cudaGetErrorString(e));
  exit(1);
}

template <number TYPE, int N> static const found &compare(device *d, int kind, int blocks, bool control) {
  must(cudaMemsetAsync(d->on_device, 0, sizeof d->here, d->stream));
  must(launch(d->stream, dim3((unsigned)blocks), GROUP_THREADS, N * 16 * sizeof(uint16_t), k_compare<TYPE, N>, kind,
              (unsigned)(kind * 7 + 1), control, d->on_device));
  must(cudaMemcpyAsync(&d->here, d->on_device, sizeof d->here, cudaMemcpyDeviceToHost, d->stream));
  must(cudaStreamSynchronize(d->stream));
  return d->here;
}

/* Prints a line for each kind of numbers. Returns how many sums differ. */
template <number TYPE, int N> static unsigned long long compare_kinds(device *d, int blocks) {
  unsigned long long different = 0;
  for (int kind = 0; kind < KINDS; kind++) {
    const found &f = compare<TYPE, N>(d, kind, blocks, false);
    printf("%s,%d,%s,%llu,%llu", TYPE == F16 ? "f16" : "bf16", N, kind_names[kind], f.sums, f.different);
    if (f.different) printf(",after step %u: %.9g and %.9g", f.step, (double)f.wgmma, (double)f.mma);
    putchar('\n');
    different += f.different;
  }
  return different;
}

int main(int argc, char **argv) {
  int blocks = argc > 1 ? atoi(argv[1]) : 2048, n = 0, major = 0;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (blocks < 1) return fputs("usage: wgmma [BLOCKS]\n", stderr), 2;
  if (cudaGetDeviceCount(&n) != cudaSuccess || n < 1) return puts("skipped: there is no GPU"), 77;
  must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major != 9) return puts("skipped: only devices of compute capability 9.x have wgmma"), 77;
  device d = {};
  must(cudaStreamCreateWithFlags(&d.stream.stream, cudaStreamNonBlocking));
  void *p = nullptr;
  must(cudaMalloc(&p, sizeof d.here));
  d.on_device = static_cast<found *>(p);
  if (compare<F16, 8>(&d, PLAIN, blocks, true).different != 1)
    return fputs("wgmma: the comparison does not find a bit that differs\n", stderr), 1;
  puts("type,N,numbers,sums,different");
  unsigned long long different = compare_kinds<F16, 8>(&d, blocks) + compare_kinds<F16, 64>(&d, blocks) +
                                 compare_kinds<BF16, 8>(&d, blocks) + compare_kinds<BF16, 64>(&d, blocks);
  puts(different ? "wgmma: DIFFERENT from mma.sync" : "wgmma: the same bits as mma.sync");
  return 0;
}
