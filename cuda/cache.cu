/* Keys and values: creating, moving, saving and restoring them. The keys of one head lie slot by slot, so that
 * attention reads a prefix in one stream. A cache also has the buffers of its passes. */
#include "held.cuh"
#include "launch.cuh"

#include <new>
#include <stdlib.h>

struct dt_snapshot {
  dt_backend *backend;
  int heads, width, wide, n; /* data: [heads][n] rows of `width` bytes, then features: [n][wide] */
  arena data;
};

static dt_limits limits_of(const dt_cache *c) {
  return {c->weights->shape.vocab, c->weights->shape.context, c->sequences, c->slots, TOP};
}

/* Bytes of one slot of one head; bytes of all slots of one head; the begin of a sequence. */
static size_t width(const dt_weights *w) { return row_bytes(w->backend->caches, w->dim); }
static size_t width(const dt_cache *c) { return width(c->weights); }
static size_t pitch(const dt_cache *c) { return (size_t)c->slots * width(c); }
static unsigned char *sequence_rows(const dt_cache *c, int sequence) {
  return c->data + (size_t)sequence * cache_heads(*c->weights) * pitch(c);
}

/* Bytes of a row's feature. */
static size_t feature_bytes(const dt_cache *c) { return (size_t)c->kept.width * sizeof(float); }
static float *sequence_features(const dt_cache *c, int sequence) {
  return c->kept.at + (size_t)sequence * (size_t)c->slots * (size_t)c->kept.width;
}

/* Bytes of one slot: all heads, and the feature. */
static size_t slot_bytes(const dt_cache *c) { return width(c) * cache_heads(*c->weights) + feature_bytes(c); }

/* Lays out the arrays of a pass from `base` on, on the host or on the device. */
static pass_rows lay_rows(char *base) {
  dt_sampling *sampling = reinterpret_cast<dt_sampling *>(base + ROWS_HEADER);
  int32_t *p = reinterpret_cast<int32_t *>(sampling + ROWS);
  return {reinterpret_cast<pass_header *>(base),
          sampling,
          p,
          p + ROWS,
          p + 2 * ROWS,
          p + 3 * ROWS,
          p + 4 * ROWS,
          p + 5 * ROWS,
          p + 6 * ROWS,
          p + 7 * ROWS,
          reinterpret_cast<int4 *>(p + 8 * ROWS),
          p + 8 * ROWS};
}

static size_t rows_bytes(const dt_cache *c) { return (ROWS_FIXED + sizeof(int32_t) * c->tail + 255) & ~(size_t)255; }

size_t cuda_cache_bytes(const dt_weights *w, int slots) {
  return (size_t)slots * (cache_heads(*w) * width(w) + (size_t)cache_feature(*w) * sizeof(float));
}

/* The number of angles by which rows of the cache may be rotated. */
static size_t angles_of(const dt_cache *c, const dt_weights *w) {
  int positions = c->slots < w->shape.context ? c->slots : w->shape.context;
  return (size_t)positions * (size_t)(w->shape.rotary_dims / 2);
}

static void layout(dt_cache *c, const dt_weights *w) {
  size_t heads = (size_t)c->turn * (size_t)w->shape.heads;
  size_t slots = (size_t)c->sequences * (size_t)c->slots;
  c->data = take<unsigned char>(&c->cache_arena, slots * cache_heads(*w) * width(w));
  c->kept = {take<float>(&c->cache_arena, slots * (size_t)cache_feature(*w)), c->slots, cache_feature(*w)};
  c->part = take<float>(&c->scratch_arena, heads * (size_t)c->splits * (size_t)w->dim);
  c->weight = take<float2>(&c->scratch_arena, heads * (size_t)c->splits);
  c->done = take<unsigned>(&c->scratch_arena, heads);
  c->cosine = take<float>(&c->scratch_arena, angles_of(c, w));
  c->sine = take<float>(&c->scratch_arena, angles_of(c, w));
  for (pass_rows &rows : c->rows) rows = lay_rows(take<char>(&c->scratch_arena, rows_bytes(c)));
}

/* Makes a cache with its sizes, without memory. */
static void measure(dt_cache *c, const dt_weights *w, int sequences, int slots) {
  c->sequences = sequences;
  c->slots = slots;
  c->splits = blocks_of(slots, SPLIT);
  size_t bytes = (size_t)sequences * cuda_cache_bytes(w, slots);
  c->turn = rows_of_turn(w->backend->turn, turn_row_bytes(w->shape.heads, c->splits, w->dim), bytes);
  c->tail = 8 * (size_t)round_up(ROWS, c->turn) * (size_t)c->splits + ROWS * (size_t)PATH + (size_t)slots;
  layout(c, w);
}

size_t cuda_scratch_bytes(const dt_weights *w, int sequences, int slots) {
  dt_cache c = {};
  measure(&c, w, sequences, slots);
  return c.scratch_arena.used;
}

/* Takes memory of the host for rows and results, which the device reads and writes directly. */
static dt_status open_host(dt_cache *c, dt_error *err) {
  size_t bytes = sizeof(int32_t) * ROWS * (3 + 3 * TOP);
  for (size_t i = 0; i < sizeof c->staged / sizeof *c->staged; i++) bytes += rows_bytes(c);
  if (cudaHostAlloc(&c->host, bytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return dt_fail_memory(err, "the rows of a pass", bytes);
  }
  char *base = static_cast<char *>(c->host);
  for (pass_rows &rows : c->staged) rows = lay_rows(base), base += rows_bytes(c);
  float *f = reinterpret_cast<float *>(base);
  c->results = {reinterpret_cast<int32_t *>(f), reinterpret_cast<int32_t *>(f + ROWS),
                f + ROWS * (1 + TOP),           f + ROWS * (1 + 2 * TOP),
                f + ROWS * (1 + 3 * TOP),       f + ROWS * (2 + 3 * TOP)};
  return DT_OK;
}

static dt_status fill_angles(const dt_cache *c, dt_error *err) {
  const dt_weights *w = c->weights;
  size_t angles = angles_of(c, w), pairs = (size_t)w->shape.rotary_dims / 2, bytes = angles * sizeof(float);
  if (!angles) return DT_OK;
  float *table = static_cast<float *>(malloc(2 * bytes));
  if (!table) return dt_fail_memory(err, "the angles of a context", 2 * bytes);
  for (size_t i = 0; i < angles; i++) {
    double angle = (double)(i / pairs) * (double)w->inv_freq[i % pairs];
    table[i] = (float)cos(angle), table[angles + i] = (float)sin(angle);
  }
  const queue &stream = w->backend->stream;
  cudaError_t e = cudaMemcpyAsync(c->cosine, table, bytes, cudaMemcpyHostToDevice, stream);
  if (!e) e = cudaMemcpyAsync(c->sine, table + angles, bytes, cudaMemcpyHostToDevice, stream);
  if (!e) e = cudaStreamSynchronize(stream);
  free(table);
  return cuda_check(w->backend, e, "opening a cache", err);
}

dt_status cuda_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  if (sequences < 1 || slots < 1)
    return dt_fail(err, DT_EINPUT, "cache: %d sequences of %d slots, both must be at least 1", sequences, slots);
  dt_cache *c = new (std::nothrow) dt_cache();
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  measure(c, w, sequences, slots);
  dt_status status = arena_open(w->backend, &c->cache_arena, "the cache", &w->backend->memory.caches, err);
  if (status == DT_OK) status = arena_open(w->backend, &c->scratch_arena, "scratch", &w->backend->memory.scratch, err);
  if (status == DT_OK) status = open_host(c, err);
  if (status == DT_OK) {
    layout(c, w);
    status = fill_angles(c, err);
  }
  if (status == DT_OK)
    *out = c;
  else
    cuda_free_cache(c);
  return status;
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
struct move_plan { /* a kernel argument: no copy to wait for */
  int n, from[MOVES], to[MOVES];
};

/* Thread i of a head's threads, or of the features' threads, moves a piece of every slot, in order. */
template <class PIECE>
static __global__ void k_move(PIECE *rows, int heads, int slots, int each, PIECE *kept, int wide, move_plan plan) {
  dependency_release();
  dependency_wait();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), of_heads = heads * each;
  if (i >= of_heads + wide) return;
  PIECE *at = i < of_heads ? rows + (size_t)(i / each) * slots * each + i % each : kept + i - of_heads;
  int stride = i < of_heads ? each : wide;
  for (int m = 0; m < plan.n; m++) at[(size_t)plan.to[m] * stride] = at[(size_t)plan.from[m] * stride];
}

template <class PIECE> static cudaError_t start_move(const dt_cache *c, int sequence, const move_plan &plan) {
  int heads = (int)cache_heads(*c->weights), each = (int)(width(c) / sizeof(PIECE));
  int wide = (int)(feature_bytes(c) / sizeof(PIECE)), threads = heads * each + wide;
  if (!threads) return cudaSuccess;
  return launch(c->weights->backend->stream, dim3((unsigned)blocks_of(threads, THREADS)), THREADS, 0, k_move<PIECE>,
                reinterpret_cast<PIECE *>(sequence_rows(c, sequence)), heads, c->slots, each,
                reinterpret_cast<PIECE *>(sequence_features(c, sequence)), wide, plan);
}

dt_status cuda_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("move", sequence, from, n, limits_of(c), err);
  if (status == DT_OK) status = check_slots("move", sequence, to, n, limits_of(c), err);
  if (status == DT_OK) status = cuda_check(b, cudaSetDevice(b->device), "being chosen", err);
  for (int first = 0; status == DT_OK && first < n; first += MOVES) {
    move_plan plan = {};
    for (; plan.n < MOVES && first + plan.n < n; plan.n++)
      plan.from[plan.n] = from[first + plan.n], plan.to[plan.n] = to[first + plan.n];
    cudaError_t e = b->caches == HELD_Q8 ? start_move<row_piece<HELD_Q8>>(c, sequence, plan)
                                         : start_move<row_piece<HELD_16>>(c, sequence, plan);
    status = cuda_check(b, e, "moving rows of a cache", err);
  }
  return status;
}

/* Copies slots first..first+n-1 of a sequence, heads and then features, between the cache and contiguous memory: out of
 * the cache if `to` is not null, otherwise into it. */
static dt_status copy_slots(const dt_cache *c, int sequence, int first, int n, void *to, const void *from,
                            cudaMemcpyKind kind, dt_error *err) {
  dt_backend *b = c->weights->backend;
  size_t each = (size_t)n * width(c), heads = cache_heads(*c->weights), wide = (size_t)n * feature_bytes(c);
  unsigned char *rows = sequence_rows(c, sequence) + (size_t)first * width(c);
  float *kept = sequence_features(c, sequence) + (size_t)first * (size_t)c->kept.width;
  cudaError_t e = cudaSetDevice(b->device);
  if (e == cudaSuccess && each && heads)
    e = to ? cudaMemcpy2DAsync(to, each, rows, pitch(c), each, heads, kind, b->stream)
           : cudaMemcpy2DAsync(rows, pitch(c), from, each, each, heads, kind, b->stream);
  if (e == cudaSuccess && wide)
    e = to ? cudaMemcpyAsync(static_cast<char *>(to) + each * heads, kept, wide, kind, b->stream)
           : cudaMemcpyAsync(kept, static_cast<const char *>(from) + each * heads, wide, kind, b->stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(b->stream);
  return cuda_check(b, e, "copying rows of a cache", err);
}

dt_status cuda_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("snapshot", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (n < 0 || n > c->slots) return dt_fail(err, DT_EINPUT, "snapshot: %d slots, the cache has %d", n, c->slots);
  dt_snapshot *s =
      new (std::nothrow) dt_snapshot{b, (int)cache_heads(*c->weights), (int)width(c), c->kept.width, n, {}};
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s);
  s->data.used = (size_t)n * slot_bytes(c);
  status = arena_open(b, &s->data, "a snapshot", &b->memory.caches, err);
  if (status == DT_OK) status = copy_slots(c, sequence, 0, n, s->data.base, nullptr, cudaMemcpyDeviceToDevice, err);
  if (status == DT_OK)
    *out = s;
  else
    cuda_free_snapshot(s);
  return status;
}

dt_status cuda_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = check_slots("restore", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (s->heads != (int)cache_heads(*c->weights) || s->width != (int)width(c) || s->wide != c->kept.width)
    return dt_fail(err, DT_EINPUT, "restore: the snapshot belongs to another model");
  if (s->n > c->slots) return dt_fail(err, DT_EINPUT, "restore: %d slots, the cache has %d", s->n, c->slots);
  return copy_slots(c, sequence, 0, s->n, nullptr, s->data.base, cudaMemcpyDeviceToDevice, err);
}

void cuda_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  arena_close(&s->data, &s->backend->memory.caches);
  delete s;
}

dt_status cuda_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  dt_status status = check_slots("read_slot", sequence, &slot, 1, limits_of(c), err);
  if (status != DT_OK) return status;
  *len = slot_bytes(c);
  void *copy = malloc(*len);
  if (!copy) return dt_fail_memory(err, "a slot", *len);
  status = copy_slots(c, sequence, slot, 1, copy, nullptr, cudaMemcpyDeviceToHost, err);
  if (status == DT_OK)
    *bytes = copy;
  else
    free(copy);
  return status;
}
