/* The variants that were compiled, and those of them that this machine can run. */
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

extern const cpu_kernels cpu_kernels_scalar;
#ifdef __x86_64__
extern const cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512, cpu_kernels_avx512vnni, cpu_kernels_amx;

static bool supports_f16c(void) { /* clang 14's __builtin_cpu_supports does not know f16c */
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Linux saves a thread's tile registers only after the process has requested it. */
static bool supports_amx(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18, TILES = 1 << 24, INT8 = 1 << 25 }; /* arch_prctl(2), leaf 7 of cpuid */
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILES) && (d & INT8) &&
         syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#elif defined(__aarch64__)
extern const cpu_kernels cpu_kernels_neon, cpu_kernels_dotprod, cpu_kernels_i8mm;

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
#endif

const cpu_kernels *cpu_variant(int i) {
  const cpu_kernels *have[6] = {&cpu_kernels_scalar};
  int n = 1;
#ifdef __x86_64__
  /* Each variant needs all instructions of the variants before it. */
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (avx2) have[n++] = &cpu_kernels_avx2;
  if (avx512) have[n++] = &cpu_kernels_avx512;
  if (vnni) have[n++] = &cpu_kernels_avx512vnni;
  if (vnni && supports_amx()) have[n++] = &cpu_kernels_amx;
#elif defined(__aarch64__)
  have[n++] = &cpu_kernels_neon;
  const bool dotprod = supports_dotprod();
  if (dotprod) have[n++] = &cpu_kernels_dotprod;
  if (dotprod && supports_i8mm()) have[n++] = &cpu_kernels_i8mm;
#endif
  return i < n ? have[i] : NULL;
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
  dt_fail(err, DT_EINPUT, "backend cpu:%s: no such variant on this machine, which has %s", variant, names);
  return NULL;
}
