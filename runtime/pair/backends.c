/* The backends that this build contains: see backends.h. */
#include "pair/backends.h"
#include "cpu/cpu.h"
#include "ranks/join.h"
#include "split/split.h"
#if defined(DTRUN_CUDA)
#include "cuda.h"
#endif

#include <string.h>

/* The fastest is first. */
static const dt_backend_ops *const BACKENDS[] = {
#if defined(DTRUN_CUDA)
    &dt_cuda_ops,
#endif
    &dt_cpu_ops};
enum { COUNT = sizeof BACKENDS / sizeof *BACKENDS };

static bool is_any(const char *name) { return !name || !strcmp(name, "auto"); }

const dt_backend_ops *backend_find(const char *name, const char **variant, dt_error *err) {
  *variant = NULL;
  const dt_backend_ops *shared = ranks_backend();
  bool any = is_any(name);
  if (any && shared) return shared;
  size_t len = any ? 0 : strcspn(name, ":");
  for (size_t i = 0; i < COUNT; i++) {
    if (any && BACKENDS[i]->present()) return BACKENDS[i];
    if (any || strlen(BACKENDS[i]->name) != len || memcmp(BACKENDS[i]->name, name, len)) continue;
    if (name[len]) *variant = name + len + 1;
    if (!shared) return BACKENDS[i];
    if (BACKENDS[i] == &dt_cpu_ops) return shared;
    dt_fail(err, DT_EINPUT, "the backend %s works in one process only: run it without mpirun", name);
    return NULL;
  }
  char variants[CPU_VARIANTS];
  cpu_variants(variants);
  dt_fail(err, DT_EINPUT, "no backend '%s' in this build, on this machine; available: auto, %scpu (%s)", name,
          COUNT > 1 ? "cuda, " : "", variants);
  return NULL;
}

const dt_backend_ops *backend_split(const char *name, const char *option, dt_backend_options *options, dt_error *err) {
  const dt_backend_ops *device = BACKENDS[0];
  if (ranks_backend()) {
    dt_fail(err, DT_EINPUT, "%s: the option works in one process only: run it without mpirun", option);
  } else if (!is_any(name) && !strncmp(name, "cpu", 3)) {
    dt_fail(err, DT_EINPUT, "%s: the backend %s has no GPU: give one of the two options", option, name);
  } else if (COUNT < 2) {
    dt_fail(err, DT_EINPUT, "%s: this build has no backend for GPUs; without the option, the CPU computes all layers",
            option);
  } else if (!is_any(name) && strcmp(name, device->name)) {
    backend_find(name, &options->variant, err);
    if (!*err->message) dt_fail(err, DT_EINPUT, "%s: the backend %s cannot be split", option, name);
  } else if (!device->present()) {
    dt_fail(err, DT_EDEVICE, "no GPU can be used for %s: without it, the CPU computes all layers", option);
  } else {
    options->host = &dt_cpu_ops, options->device = device;
    return &dt_split_ops;
  }
  return NULL;
}

const char *backend_passed_over(const char *name) {
  for (size_t i = 0; i < COUNT && is_any(name) && !ranks_backend(); i++) {
    if (BACKENDS[i]->present()) return NULL;
    const char *why = BACKENDS[i]->unusable ? BACKENDS[i]->unusable() : NULL;
    if (why) return why;
  }
  return NULL;
}

const char *backend_fallback(const char *name, const dt_backend_ops *failed) {
  size_t i = 0;
  while (i < COUNT && BACKENDS[i] != failed) i++;
  return is_any(name) && i + 1 < COUNT ? BACKENDS[i + 1]->name : NULL;
}
