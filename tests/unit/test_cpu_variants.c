/* Which variants of the CPU backend a processor runs. */
#include "kernels.h"
#include "unit.h"

#include <stdio.h>

enum {
  AVX2 = CPU_HAS_AVX2,
  AVX512 = CPU_HAS_AVX512,
  AVX512_VNNI = CPU_HAS_AVX512_VNNI,
  AMX = CPU_HAS_AMX,
  AVX_VNNI = CPU_HAS_AVX_VNNI,
  DOTPROD = CPU_HAS_DOTPROD,
  I8MM = CPU_HAS_I8MM
};

/* Processors, as hypervisors may show them, and their best variants. */
static const struct {
  const char *name;
  unsigned features;
  const char *best;
} processors[] = {
#ifdef __x86_64__
    {"none of them", 0, "scalar"},
    {"Haswell, Zen 3", AVX2, "avx2"},
    {"Skylake-X", AVX2 | AVX512, "avx512"},
    {"Cascade Lake, Zen 4", AVX2 | AVX512 | AVX512_VNNI, "avx512vnni"},
    {"Alder Lake", AVX2 | AVX_VNNI, "avxvnni"},
    {"Zen 5", AVX2 | AVX512 | AVX512_VNNI | AVX_VNNI, "avx512vnni"},
    {"Sapphire Rapids", AVX2 | AVX512 | AVX512_VNNI | AMX | AVX_VNNI, "amx"},
    {"AVX-512 hidden", AVX2 | AVX512_VNNI | AMX | AVX_VNNI, "avxvnni"},
    {"AVX-512 and AVX-VNNI hidden", AVX2 | AVX512_VNNI | AMX, "avx2"},
    {"AVX-512's VNNI hidden", AVX2 | AVX512 | AMX | AVX_VNNI, "avxvnni"},
    {"both VNNI hidden", AVX2 | AVX512 | AMX, "avx512"},
    {"AVX2 hidden", AVX512 | AVX512_VNNI | AMX | AVX_VNNI, "scalar"},
#elif defined(__aarch64__)
    {"Cortex-A72", 0, "neon"},
    {"Neoverse N1", DOTPROD, "dotprod"},
    {"Neoverse V1", DOTPROD | I8MM, "i8mm"},
    {"DOTPROD hidden", I8MM, "neon"},
#else
    {"any", 0, "scalar"},
#endif
};

/* A build with sanitizers leaves variants out that its machine lacks. */
static bool is_built(const char *name) {
  const cpu_kernels *k;
  for (int i = 0; (k = cpu_variant_with(~0u, i)); i++)
    if (strcmp(k->name, name) == 0) return true;
  return false;
}

static void each_processor_has_its_best_variant(void **state) {
  (void)state;
  if (is_built("avx2bare")) skip();
  for (size_t p = 0; p < sizeof processors / sizeof *processors; p++) {
    const char *best = "none";
    const cpu_kernels *k;
    for (int i = 0; (k = cpu_variant_with(processors[p].features, i)); i++) best = k->name;
    if (is_built(processors[p].best) && strcmp(best, processors[p].best))
      fail_msg("%s: the best variant is %s, not %s", processors[p].name, best, processors[p].best);
  }
}

#ifdef __x86_64__
/* Linux's name of the feature with which a variant comes. That of amx is left out: Linux may refuse the tiles. */
static const struct {
  const char *feature, *variant;
} names[] = {{"avx2", "avx2"}, {"avx512vl", "avx512"}, {"avx_vnni", "avxvnni"}, {"avx512_vnni", "avx512vnni"}};

static void the_variants_are_those_whose_features_linux_shows(void **state) {
  (void)state;
  char line[8192], named[64];
  bool found = false;
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (!file) skip();
  while (!found && fgets(line, sizeof line, file)) found = strncmp(line, "flags", 5) == 0;
  fclose(file);
  assert_true(found);
  line[strcspn(line, "\n")] = ' ';
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    bool runs = false;
    const cpu_kernels *k;
    for (int i = 0; (k = cpu_variant(i)); i++) runs |= strcmp(k->name, names[n].variant) == 0;
    snprintf(named, sizeof named, " %s ", names[n].feature);
    bool shown = strstr(line, named);
    if (is_built(names[n].variant) && runs != shown)
      fail_msg("%s: Linux %s %s", names[n].variant, shown ? "shows" : "does not show", names[n].feature);
  }
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_processor_has_its_best_variant),
#ifdef __x86_64__
      cmocka_unit_test(the_variants_are_those_whose_features_linux_shows),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
