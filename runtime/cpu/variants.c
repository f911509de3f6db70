/* The variants that were compiled, and which of them this machine can run. */
#include "built.h" /* CPU_BUILT(X): see CMakeLists.txt */
#include "cpu.h"
#include "kernels.h"
#include "system/os.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdio.h>
#include <string.h>

/* What each variant needs (kernels.h). */
enum {
  NEEDS_scalar = 0,
  NEEDS_avx2 = CPU_HAS_AVX2,
  NEEDS_avx2bare = NEEDS_avx2,
  NEEDS_avxvnni = NEEDS_avx2 | CPU_HAS_AVX_VNNI,
  NEEDS_avx512 = NEEDS_avx2 | CPU_HAS_AVX512,
  NEEDS_avx512vnni = NEEDS_avx512 | CPU_HAS_AVX512_VNNI,
  NEEDS_amx = NEEDS_avx512vnni | CPU_HAS_AMX,
  NEEDS_neon = 0,
  NEEDS_dotprod = CPU_HAS_DOTPROD,
  NEEDS_i8mm = NEEDS_dotprod | CPU_HAS_I8MM
};

#ifdef __x86_64__
static bool supports_f16c(void) { /* clang 14's __builtin_cpu_supports does not know f16c */
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool supports_amx(void) {
  enum { TILES = 1 << 24, INT8 = 1 << 25 }; /* leaf 7 of cpuid */
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILES) && (d & INT8) && os_grants_tiles();
}

/* VNNI's dot products without AVX-512. clang 14's __builtin_cpu_supports does not know them. */
static bool supports_avx_vnni(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1 << 4);
}

/* __builtin_cpu_supports also checks that the system saves the registers. */
static unsigned features_of_machine(void) {
  unsigned has = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c()) has |= CPU_HAS_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    has |= CPU_HAS_AVX512;
  if (__builtin_cpu_supports("avx512vnni")) has |= CPU_HAS_AVX512_VNNI;
  if (supports_avx_vnni()) has |= CPU_HAS_AVX_VNNI;
  if (supports_amx()) has |= CPU_HAS_AMX;
  return has;
}
#elif defined(__aarch64__)
static unsigned features_of_machine(void) {
  return (os_has_dotprod() ? CPU_HAS_DOTPROD : 0) | (os_has_i8mm() ? CPU_HAS_I8MM : 0);
}
#else
static unsigned features_of_machine(void) { return 0; }
#endif

#define DECLARE(variant) extern const cpu_kernels cpu_kernels_##variant;
CPU_BUILT(DECLARE)

#define ROW(variant) {NEEDS_##variant, &cpu_kernels_##variant},
static const struct {
  unsigned needs;
  const cpu_kernels *kernels;
} built[] = {CPU_BUILT(ROW)};

const cpu_kernels *cpu_variant_with(unsigned features, int i) {
  for (size_t v = 0; v < sizeof built / sizeof *built; v++)
    if (!(built[v].needs & ~features) && i-- == 0) return built[v].kernels;
  return NULL;
}

const cpu_kernels *cpu_variant(int i) { return cpu_variant_with(features_of_machine(), i); }

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
