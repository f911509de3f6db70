/* Keys and values: create, move, copy out and in. A head's keys lie slot by slot, so that a prefix streams. With a cache
 * come the buffers of its passes. */
#include "launch.cuh"

#include <new>
#include <stdlib.h>

struct dt_snapshot {
  dt_backend *backend;
  int heads, dim, n; /* data: [heads][n][dim] */
  arena data;
};

static dt_limits limits_of(const dt_cache *c) {
  return {c->weights->shape.vocab, c->weights->shape.context, c->sequences, c->slots};
}

/* Bytes of one slot of one head, of all slots, and where a sequence begins. */
static size_t width(const dt_cache *c) { return (size_t)c->weights->dim * sizeof(uint16_t); }
static size_t pitch(const dt_cache *c) { return (size_t)c->slots * width(c); }
static uint16_t *sequence_rows(const dt_cache *c, int sequence) {
  return c->data + (size_t)sequence * cache_heads(*c->weights) * (size_t)c->slots * (size_t)c->weights->dim;
}

/* The arrays of a pass from `base` on, on the host or on the device. */
static pass_rows lay_rows(char *base) {
  dt_sampling *sampling = reinterpret_cast<dt_sampling *>(base + ROWS_HEADER);
  int32_t *p = reinterpret_cast<int32_t *>(sampling + ROWS);
  return {reinterpret_cast<pass_header *>(base), sampling, p, p + ROWS, p + 2 * ROWS, p + 3 * ROWS, p + 4 * ROWS, p + 5 * ROWS,
          p + 6 * ROWS, reinterpret_cast<int4 *>(p + 7 * ROWS), p + 7 * ROWS};
}

static size_t rows_bytes(const dt_cache *c) { return (ROWS_FIXED + sizeof(int32_t) * c->tail + 255) & ~(size_t)255; }

size_t cuda_cache_bytes(const dt_weights *w, int slots) {
  return cache_heads(*w) * (size_t)slots * (size_t)w->dim * sizeof(uint16_t);
}

static void layout(dt_cache *c) {
  const dt_weights *w = c->weights;
  size_t heads = ROWS * (size_t)w->shape.heads;
  c->data = take<uint16_t>(&c->cache_arena, (size_t)c->sequences * cuda_cache_bytes(w, c->slots) / sizeof(uint16_t));
  c->part = take<float>(&c->scratch_arena, heads * (size_t)c->splits * (size_t)w->dim);
  c->weight = take<float2>(&c->scratch_arena, heads * (size_t)c->splits);
  c->done = take<unsigned>(&c->scratch_arena, heads);
  for (pass_rows &rows : c->rows) rows = lay_rows(take<char>(&c->scratch_arena, rows_bytes(c)));
}

/* Rows and results in memory of the host that the device reads and writes directly. */
static dt_status open_host(dt_cache *c, dt_error *err) {
  size_t bytes = sizeof(int32_t) * ROWS * (3 + 3 * CHECK_TOP);
  for (size_t i = 0; i < sizeof c->staged / sizeof *c->staged; i++) bytes += rows_bytes(c);
  if (cudaHostAlloc(&c->host, bytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return dt_fail_memory(err, "the rows of a pass", bytes);
  }
  char *base = static_cast<char *>(c->host);
  for (pass_rows &rows : c->staged) rows = lay_rows(base), base += rows_bytes(c);
  float *f = reinterpret_cast<float *>(base);
  c->results = {reinterpret_cast<int32_t *>(f), reinterpret_cast<int32_t *>(f + ROWS), f + ROWS * (1 + CHECK_TOP),
                f + ROWS * (1 + 2 * CHECK_TOP), f + ROWS * (1 + 3 * CHECK_TOP), f + ROWS * (2 + 3 * CHECK_TOP)};
  return DT_OK;
}

dt_status cuda_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  if (sequences < 1 || slots < 1)
    return dt_fail(err, DT_EINPUT, "cache: %d sequences of %d slots, both must be at least 1", sequences, slots);
  dt_cache *c = new (std::nothrow) dt_cache();
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  c->sequences = sequences;
  c->slots = slots;
  c->splits = blocks_of(slots, SPLIT);
  c->tail = 4 * ROWS * (size_t)c->splits + ROWS * (size_t)PATH + (size_t)slots;
  layout(c);
  dt_status status = arena_open(w->backend, &c->cache_arena, "the cache", &w->backend->memory.caches, err);
  if (status == DT_OK) status = arena_open(w->backend, &c->scratch_arena, "scratch", &w->backend->memory.scratch, err);
  if (status == DT_OK) status = open_host(c, err);
  if (status != DT_OK) {
    cuda_free_cache(c);
    return status;
  }
  layout(c);
  *out = c;
  return DT_OK;
}

void cuda_free_cache(dt_cache *c) {
  if (!c) return;
  graphs_free(c->graphs);
  if (c->host) cudaFreeHost(c->host);
  arena_close(&c->cache_arena, &c->weights->backend->memory.caches);
  arena_close(&c->scratch_arena, &c->weights->backend->memory.scratch);
  delete c;
}

constexpr int MOVES = 256, THREADS = 128;
struct move_plan { /* travels as an argument: no copy to wait for */
  int n, from[MOVES], to[MOVES];
};

/* Thread i of a head's threads moves 16 bytes of every slot, in order. */
static __global__ void k_move(uint4 *rows, int heads, int slots, int each, move_plan plan) {
  dependency_release();
  dependency_wait();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= heads * each) return;
  uint4 *head = rows + (size_t)(i / each) * slots * each + i % each;
  for (int m = 0; m < plan.n; m++) head[(size_t)plan.to[m] * each] = head[(size_t)plan.from[m] * each];
}

dt_status cuda_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("move", sequence, from, n, limits_of(c), err);
  if (status == DT_OK) status = check_slots("move", sequence, to, n, limits_of(c), err);
  if (status == DT_OK) status = cuda_check(b, cudaSetDevice(b->device), "being chosen", err);
  int heads = (int)cache_heads(*c->weights), each = (int)(width(c) / sizeof(uint4));
  for (int first = 0; status == DT_OK && first < n; first += MOVES) {
    move_plan plan = {};
    for (; plan.n < MOVES && first + plan.n < n; plan.n++)
      plan.from[plan.n] = from[first + plan.n], plan.to[plan.n] = to[first + plan.n];
    cudaError_t e = launch(b->stream, dim3((unsigned)blocks_of(heads * each, THREADS)), THREADS, 0, k_move,
                           reinterpret_cast<uint4 *>(sequence_rows(c, sequence)), heads, c->slots, each, plan);
    status = cuda_check(b, e, "moving rows of a cache", err);
  }
  return status;
}

/* Slots 0..n-1 of all heads between a cache's sequence and memory where they lie close together. */
static dt_status copy_slots(const dt_cache *c, void *to, size_t to_pitch, const void *from, size_t from_pitch, int n,
                            cudaMemcpyKind kind, dt_error *err) {
  dt_backend *b = c->weights->backend;
  if (n == 0) return DT_OK;
  cudaError_t e = cudaSetDevice(b->device);
  if (e == cudaSuccess)
    e = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, (size_t)n * width(c), cache_heads(*c->weights), kind, b->stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(b->stream);
  return cuda_check(b, e, "copying rows of a cache", err);
}

dt_status cuda_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("snapshot", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (n < 0 || n > c->slots) return dt_fail(err, DT_EINPUT, "snapshot: %d slots, the cache has %d", n, c->slots);
  dt_snapshot *s = new (std::nothrow) dt_snapshot{b, (int)cache_heads(*c->weights), c->weights->dim, n, {}};
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s);
  s->data.used = (size_t)n * width(c) * cache_heads(*c->weights);
  status = arena_open(b, &s->data, "a snapshot", &b->memory.caches, err);
  if (status == DT_OK)
    status = copy_slots(c, s->data.base, (size_t)n * width(c), sequence_rows(c, sequence), pitch(c), n, cudaMemcpyDeviceToDevice, err);
  if (status == DT_OK)
    *out = s;
  else
    cuda_free_snapshot(s);
  return status;
}

dt_status cuda_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = check_slots("restore", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (s->heads != (int)cache_heads(*c->weights) || s->dim != c->weights->dim)
    return dt_fail(err, DT_EINPUT, "restore: the snapshot is of another model");
  if (s->n > c->slots) return dt_fail(err, DT_EINPUT, "restore: %d slots, the cache has %d", s->n, c->slots);
  return copy_slots(c, sequence_rows(c, sequence), pitch(c), s->data.base, (size_t)s->n * width(c), s->n, cudaMemcpyDeviceToDevice,
                    err);
}

void cuda_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  arena_close(&s->data, &s->backend->memory.caches);
  delete s;
}

dt_status cuda_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  dt_status status = check_slots("read_slot", sequence, &slot, 1, limits_of(c), err);
  if (status != DT_OK) return status;
  *len = width(c) * cache_heads(*c->weights);
  void *copy = malloc(*len);
  if (!copy) return dt_fail_memory(err, "a slot", *len);
  const uint16_t *rows = sequence_rows(c, sequence) + (size_t)slot * (size_t)c->weights->dim;
  status = copy_slots(c, copy, width(c), rows, pitch(c), 1, cudaMemcpyDeviceToHost, err);
  if (status == DT_OK)
    *bytes = copy;
  else
    free(copy);
  return status;
}
