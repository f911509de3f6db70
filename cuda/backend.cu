/* Opens and closes a device; its memory, its errors, and the vtable of the CUDA backend. */
#include "delta.cuh"

#include <new>
#include <stdio.h>
#include <stdlib.h>

dt_status cuda_check(dt_backend *b, cudaError_t e, const char *what, dt_error *err) {
  if (b->broken) return dt_fail(err, DT_EDEVICE, "the GPU has failed before: start dtrun again, or use --backend cpu");
  if (e == cudaSuccess) return DT_OK;
  b->broken = e != cudaErrorMemoryAllocation;
  return dt_fail(err, DT_EDEVICE, "the GPU failed while %s: %s (--backend cpu works without it)", what,
                 cudaGetErrorString(e));
}

dt_status arena_open(dt_backend *b, arena *a, const char *what, size_t *account, dt_error *err) {
  a->size = a->used ? a->used : 256;
  a->used = 0;
  void *p = nullptr;
  dt_status status = cuda_check(b, cudaSetDevice(b->device), "being chosen", err);
  if (status != DT_OK) return status;
  cudaError_t e = cudaMalloc(&p, a->size);
  if (e == cudaErrorMemoryAllocation) {
    size_t left = 0, total = 0;
    cudaGetLastError(); /* clears the error, which is reported here */
    cudaMemGetInfo(&left, &total);
    return dt_fail(
        err, DT_ENOMEM,
        "out of GPU memory: %s needs %.1f MB, %.1f of %.1f MB are free (--backend cpu uses the host's memory)", what,
        (double)a->size * 1e-6, (double)left * 1e-6, (double)total * 1e-6);
  }
  if (e == cudaSuccess) {
    a->base = static_cast<char *>(p);
    a->guards = b->guards ? b : nullptr;
    *account += a->size;
    e = cudaMemsetAsync(p, 0, a->size, b->stream);
  }
  if (e == cudaSuccess) e = cudaStreamSynchronize(b->stream);
  return cuda_check(b, e, "clearing memory", err);
}

struct guarded {
  void *memory;
  guarded *next;
};

void *arena_apart(arena *a, size_t bytes) {
  void *p = nullptr;
  cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);
  if (e == cudaSuccess) e = cudaMemsetAsync(p, 0, bytes, a->guards->stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(a->guards->stream);
  if (e != cudaSuccess) {
    fprintf(stderr, "DTRUN_GUARD: an array of %zu bytes: %s\n", bytes, cudaGetErrorString(e));
    abort();
  }
  a->arrays = new guarded{p, a->arrays};
  return p;
}

void arena_close(arena *a, size_t *account) {
  if (!a->base) return;
  while (guarded *array = a->arrays) {
    a->arrays = array->next;
    cudaFree(array->memory);
    delete array;
  }
  cudaFree(a->base);
  *account -= a->size;
  *a = arena{};
}

void describe_device(dt_backend *b) {
  snprintf(b->description, sizeof b->description, "cuda:%s, %s graphs, %s overlap%s%s%s%s", b->name,
           b->graphs ? "with" : "without", b->overlaps ? "with" : "without", b->refused ? " (" : "",
           b->refused ? b->refused : "", b->refused ? ")" : "", b->no_library ? ", prompts without cuBLASLt" : "");
}

static cudaError_t count_devices(int *n) {
  cudaError_t e = cudaGetDeviceCount(n);
  if (e == cudaSuccess && *n < 1) e = cudaErrorNoDevice;
  return e;
}

static bool cuda_present(void) {
  int n = 0;
  bool there = count_devices(&n) == cudaSuccess;
  cudaGetLastError();
  return there;
}

/* If there is no driver at all, the runtime also reports one that is too old, but without a version. */
static const char *cuda_unusable(void) {
  static char why[100];
  int n = 0, driver = 0;
  bool old =
      count_devices(&n) == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  cudaGetLastError();
  snprintf(why, sizeof why, "its driver supports CUDA %d.%d, but this dtrun needs CUDA %d.%d", driver / 1000,
           driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  return old ? why : nullptr;
}

/* In the order of `cache_format`. Caches with 16 bits have the type of the model's weights, F16 or BF16. */
static const char *const CACHE_DTYPES[] = {"16-bit", "q8", nullptr};
static const char *const WEIGHT_DTYPES[] = {nullptr}, *const ACTIVATIONS[] = {nullptr};

/* A number of rows, which an environment variable may lower. */
static int most_rows(const char *name) {
  const char *asked = getenv(name);
  int rows = asked ? atoi(asked) : ROWS;
  return rows < QUERIES ? QUERIES : rows > ROWS ? ROWS : rows;
}

static dt_status cuda_open(const dt_backend_options *options, dt_backend **out, dt_error *err) {
  int n = 0, major = 0;
  cudaDeviceProp device = {};
  if (options->variant)
    return dt_fail(err, DT_EINPUT, "the CUDA backend has no variant '%s': use --backend cuda", options->variant);
  int caches = 0;
  while (options->cache_dtype && CACHE_DTYPES[caches] && strcmp(options->cache_dtype, CACHE_DTYPES[caches])) caches++;
  if (!CACHE_DTYPES[caches])
    return dt_fail(err, DT_EINPUT, "caches: the CUDA backend does not support the type '%.40s'", options->cache_dtype);
  cudaError_t e = count_devices(&n);
  const int index = options->device_index;
  if (e == cudaSuccess && index >= n)
    return dt_fail(err, DT_EINPUT, "gpus: GPU %d is wanted, but there %s %d", index + 1, n == 1 ? "is" : "are only", n);
  if (e == cudaSuccess) e = cudaGetDeviceProperties(&device, index);
  if (e == cudaSuccess) e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
  if (e != cudaSuccess)
    return dt_fail(err, DT_EDEVICE, "no GPU can be used: %s (--backend cpu works without one)", cudaGetErrorString(e));
  if (major < 8)
    return dt_fail(
        err, DT_EDEVICE,
        "no GPU can be used: %s has compute capability %d.x, at least 8.0 is needed (--backend cpu works without one)",
        device.name, major);
  dt_backend *b = new (std::nothrow) dt_backend();
  if (!b) return dt_fail_memory(err, "the CUDA backend", sizeof *b);
  b->memory.on_device = true, b->device = index;
  snprintf(b->name, sizeof b->name, "%s", device.name);
  cudaSetDeviceFlags(cudaDeviceScheduleSpin); /* may fail: too late if the process already uses the device */
  cudaGetLastError();
  e = cudaSetDevice(b->device);
  b->overlaps = major >= 9 && !getenv("DTRUN_NO_PDL"); /* devices before Hopper have no dependent launch */
  b->graphs = !getenv("DTRUN_NO_GRAPH");
  b->widens = getenv("DTRUN_WIDEN");
  b->guards = getenv("DTRUN_GUARD");
  b->caches = (cache_format)caches;
  b->batch = most_rows("DTRUN_ATTENTION_ROWS"), b->rows = most_rows("DTRUN_ROWS");
  describe_device(b);
  if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&b->stream.stream, cudaStreamNonBlocking);
  dt_status status = cuda_check(b, e, "opening", err);
  if (status == DT_OK)
    *out = b;
  else
    delete b;
  return status;
}

static void cuda_close(dt_backend *b) {
  if (b->stream) cudaStreamDestroy(b->stream);
  delete b;
}

static const char *cuda_describe(const dt_backend *b) { return b->description; }

size_t cuda_bytes_free(const dt_backend *b) {
  size_t free_bytes = 0, all = 0;
  cudaSetDevice(b->device); /* an error shows in the next call */
  if (cudaMemGetInfo(&free_bytes, &all) == cudaSuccess) return free_bytes > MARGIN ? free_bytes - MARGIN : 0;
  cudaGetLastError();
  return SIZE_MAX;
}

static const char *cuda_weight_dtype(const dt_weights *w) { return w->stored; }

static const char *cuda_weight_activations(const dt_weights *w) {
  (void)w;
  return nullptr; /* activations are never quantized */
}

static dt_memory cuda_memory(const dt_backend *b) { return b->memory; }

extern "C" const dt_backend_ops dt_cuda_ops = {
    .name = "cuda",
    .cache_dtypes = CACHE_DTYPES,
    .weight_dtypes = WEIGHT_DTYPES,
    .activations = ACTIVATIONS,
    .candidates = TOP,
    .windows = true,
    .chunk = CHUNK,
    .present = cuda_present,
    .unusable = cuda_unusable,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .upload = cuda_upload,
    .weight_dtype = cuda_weight_dtype,
    .weight_activations = cuda_weight_activations,
    .free_weights = cuda_free_weights,
    .account = cuda_account,
    .cache_bytes = cuda_cache_bytes,
    .bytes_free = cuda_bytes_free,
    .scratch_bytes = cuda_scratch_bytes,
    .upload_head = cuda_upload_head,
    .create_cache = cuda_create_cache,
    .free_cache = cuda_free_cache,
    .forward = cuda_forward,
    .move = cuda_move,
    .keep = cuda_keep,
    .snapshot = cuda_snapshot,
    .restore = cuda_restore,
    .free_snapshot = cuda_free_snapshot,
    .read_slot = cuda_read_slot,
    .memory = cuda_memory,
    .read_bandwidth = cuda_read_bandwidth,
};
