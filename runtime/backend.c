/* The backends compiled in: see backend_find in backend.h. */
#include "backend.h"
#include "cpu/cpu.h"

#include <string.h>

static const dt_backend_ops *const BACKENDS[] = {&dt_cpu_ops};

const dt_backend_ops *backend_find(const char *name, const char **variant, dt_error *err) {
  *variant = NULL;
  if (!name || !strcmp(name, "auto")) return BACKENDS[0]; /* the fastest comes first */
  size_t len = strcspn(name, ":");
  for (size_t i = 0; i < sizeof BACKENDS / sizeof *BACKENDS; i++)
    if (strlen(BACKENDS[i]->name) == len && !memcmp(BACKENDS[i]->name, name, len)) {
      if (name[len]) *variant = name + len + 1;
      return BACKENDS[i];
    }
  dt_fail(err, DT_EINPUT, "no backend '%s' in this build: auto, cpu (cpu:avx512, cpu:avx2, cpu:scalar)", name);
  return NULL;
}
