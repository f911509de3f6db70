/* The CPU backend: opening and closing it, its function table, its memory, and the bandwidth probe. */
#include "cpu.h"
#include "internal.h"
#include "system/numa.h"
#include "system/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_THREADS = 1024 };

static bool cpu_present(void) { return true; }

#define CACHE_NAME(name) #name,
static const char *const CACHE_DTYPES[] = {CPU_CACHE_LIST(CACHE_NAME) NULL};
#define NAME(name, type) #name,
static const char *const WEIGHT_DTYPES[] = {CPU_ASKED_LIST(NAME) NULL};
static const char *const ACTIVATIONS[] = {"8", "16", NULL};

static dt_status cpu_open(const dt_backend_options *options, dt_backend **out, dt_error *err) {
  const cpu_kernels *kernels = cpu_find_kernels(options->variant, err);
  if (!kernels) return DT_EINPUT;
  if (options->threads < 1 || options->threads > MAX_THREADS)
    return dt_fail(err, DT_EINPUT, "threads: got %d, expected 1 to %d", options->threads, MAX_THREADS);
  int type = 0;
  while (type < CPU_CACHES && options->cache_dtype && strcmp(options->cache_dtype, CACHE_DTYPES[type])) type++;
  if (type == CPU_CACHES)
    return dt_fail(err, DT_EINPUT, "caches: the CPU backend does not support the type '%.40s'", options->cache_dtype);
  dt_backend *b = calloc(1, sizeof *b);
  if (!b) return dt_fail_memory(err, "the CPU backend", sizeof *b);
  b->kernels = kernels;
  b->threads = options->threads;
  b->cache_type = kernels->cache[type];
  b->ranks = options->ranks;
  if (options->packed) b->packed = strdup(options->packed); /* without memory for it, nothing is kept */
  snprintf(b->description, sizeof b->description, b->ranks ? "cpu:%s, %d ranks" : "cpu:%s", kernels->name,
           b->ranks ? b->ranks->count : 1);
  topology processors;
  bool placed = numa_read(options->numa, &processors);
  dt_status status = cpu_team_open(b->threads, placed ? &processors : NULL, &b->team, err);
  if (status == DT_OK)
    *out = b;
  else
    free(b->packed), free(b);
  return status;
}

static void cpu_close(dt_backend *b) {
  cpu_team_close(b->team);
  free(b->packed);
  free(b);
}

static const char *cpu_describe(const dt_backend *b) { return b->description; }

static const char *cpu_weight_dtype(const dt_weights *w) { return w->stored; }

static const char *cpu_weight_activations(const dt_weights *w) {
  return w->activations == 0 ? NULL : ACTIVATIONS[w->activations == 16];
}

static size_t cpu_bytes_free(const dt_backend *b) {
  (void)b;
  return os_free_memory();
}

static dt_memory cpu_memory(const dt_backend *b) { return b->memory; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
  const cpu_kernels *kernels;
  float *data;
  int chunks;
  volatile float sink; /* keeps the sums from being optimized away */
} probe;

enum { PROBE_CHUNK = 1 << 14 }; /* floats in a chunk */

static void probe_fill(const cpu_member *me, void *context) {
  probe *p = context;
  int first, last;
  cpu_share(me, p->chunks, &first, &last);
  for (size_t i = (size_t)first * PROBE_CHUNK; i < (size_t)last * PROBE_CHUNK; i++) p->data[i] = 1.0f;
}

static void probe_read(const cpu_member *me, void *context) {
  probe *p = context;
  int first, last;
  cpu_share(me, p->chunks, &first, &last);
  if (last > first)
    p->sink = p->kernels->stream(p->data + (size_t)first * PROBE_CHUNK, (size_t)(last - first) * PROBE_CHUNK);
}

static double cpu_read_bandwidth(dt_backend *b) {
  long cache = os_last_cache();
  if (cache <= 0) cache = 32 << 20;
  size_t bytes = 4 * (size_t)cache, account = 0;
  cpu_arena arena = {.used = bytes};
  if (cpu_arena_open(&arena, "the bandwidth probe", b->team, &account, NULL) != DT_OK) return 0.0;
  probe p = {b->kernels, (float *)arena.base, (int)(bytes / sizeof(float) / PROBE_CHUNK), 0.0f};
  cpu_team_run(b->team, probe_fill, &p);
  double best = 0.0;
  for (int i = 0; i < 3; i++) {
    double start = now();
    cpu_team_run(b->team, probe_read, &p);
    double rate = (double)p.chunks * PROBE_CHUNK * sizeof(float) / (now() - start);
    if (rate > best) best = rate;
  }
  cpu_arena_close(&arena, &account);
  return best;
}

const dt_backend_ops dt_cpu_ops = {
    .name = "cpu",
    .cache_dtypes = CACHE_DTYPES,
    .weight_dtypes = WEIGHT_DTYPES,
    .activations = ACTIVATIONS,
    .candidates = CPU_TOP,
    .windows = true,
    .chunk = 0,
    .present = cpu_present,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .upload = cpu_upload,
    .upload_head = cpu_upload_head,
    .weight_dtype = cpu_weight_dtype,
    .weight_activations = cpu_weight_activations,
    .free_weights = cpu_free_weights,
    .cache_bytes = cpu_cache_bytes,
    .bytes_free = cpu_bytes_free,
    .create_cache = cpu_create_cache,
    .free_cache = cpu_free_cache,
    .forward = cpu_forward,
    .move = cpu_move,
    .keep = cpu_keep,
    .snapshot = cpu_snapshot,
    .restore = cpu_restore,
    .free_snapshot = cpu_free_snapshot,
    .read_slot = cpu_read_slot,
    .memory = cpu_memory,
    .read_bandwidth = cpu_read_bandwidth,
};
