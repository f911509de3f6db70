/* The variants that were compiled, and which of them this machine can run. */
#include "built.h" /* CPU_BUILT(X): see CMakeLists.txt */
#include "cpu.h"
#include "kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include <stdio.h>
#include <string.h>

/* Each variant needs all instructions of the variants before it. */
#ifdef __x86_64__
enum { LEVEL_scalar, LEVEL_avx2, LEVEL_avx2bare = LEVEL_avx2, LEVEL_avx512, LEVEL_avx512vnni, LEVEL_amx };

static bool supports_f16c(void) { /* clang 14's __builtin_cpu_supports does not know f16c */
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Linux saves the tile registers of a thread only after the process has requested it. */
static bool supports_amx(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18, TILES = 1 << 24, INT8 = 1 << 25 }; /* arch_prctl(2), leaf 7 of cpuid */
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILES) && (d & INT8) &&
         syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static int level_of_machine(void) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !supports_f16c()) return LEVEL_scalar;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return LEVEL_avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return LEVEL_avx512;
  return supports_amx() ? LEVEL_amx : LEVEL_avx512vnni;
}
#elif defined(__aarch64__)
enum { LEVEL_scalar, LEVEL_neon, LEVEL_dotprod, LEVEL_i8mm };

#ifdef __APPLE__
static bool has(const char *feature) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, NULL, 0) == 0 && value;
}

static bool supports_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
static bool supports_i8mm(void) { return has("hw.optional.arm.FEAT_I8MM"); }
#else /* bits of Linux's <asm/hwcap.h>, by number for older headers */
static bool supports_dotprod(void) { return getauxval(AT_HWCAP) >> 20 & 1; }
static bool supports_i8mm(void) { return getauxval(AT_HWCAP2) >> 13 & 1; }
#endif

static int level_of_machine(void) {
  if (!supports_dotprod()) return LEVEL_neon;
  return supports_i8mm() ? LEVEL_i8mm : LEVEL_dotprod;
}
#else
enum { LEVEL_scalar };

static int level_of_machine(void) { return LEVEL_scalar; }
#endif

#define DECLARE(variant) extern const cpu_kernels cpu_kernels_##variant;
CPU_BUILT(DECLARE)

#define ROW(variant) {LEVEL_##variant, &cpu_kernels_##variant},
static const struct {
  int needs;
  const cpu_kernels *kernels;
} built[] = {CPU_BUILT(ROW)};

const cpu_kernels *cpu_variant(int i) {
  const int n = sizeof built / sizeof *built;
  return i < n && built[i].needs <= level_of_machine() ? built[i].kernels : NULL;
}

void cpu_variants(char names[CPU_VARIANTS]) {
  size_t used = 0;
  for (int i = 0; cpu_variant(i); i++)
    used += (size_t)snprintf(names + used, CPU_VARIANTS - used, "%scpu:%s", i ? ", " : "", cpu_variant(i)->name);
}

const cpu_kernels *cpu_find_kernels(const char *variant, dt_error *err) {
  const cpu_kernels *best = NULL;
  char names[CPU_VARIANTS];
  for (int i = 0; cpu_variant(i); i++) {
    best = cpu_variant(i);
    if (variant && strcmp(variant, best->name) == 0) return best;
  }
  if (!variant) return best;
  cpu_variants(names);
  dt_fail(err, DT_EINPUT, "backend cpu:%s: no such variant on this machine (available: %s)", variant, names);
  return NULL;
}
